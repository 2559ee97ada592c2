// One exception family. What a program does with an error is decided by its exit code, which is
// named here and documented in docs/cli.md.
#pragma once

#include <stdexcept>
#include <string>

namespace orrery {

enum class ExitCode : int {
  ok = 0,
  run_failed = 1,
  usage = 2,          ///< the command line or a file is wrong
  machine_lacks = 3,  ///< the machine lacks something (memory, ptrace, a package)
  interrupted = 130,
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, ExitCode code = ExitCode::run_failed)
      : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// A text that cannot be read as the value that was asked for. `what()` is "what; what would be
/// right", without a place: the reader of the file adds it.
class ValueError : public Error {
 public:
  explicit ValueError(const std::string& what) : Error(what, ExitCode::usage) {}
};

/// The machine lacks something that the run needs.
class MachineError : public Error {
 public:
  explicit MachineError(const std::string& what) : Error(what, ExitCode::machine_lacks) {}
};

/// A system call failed. `attempted` says what was being done, e.g. "open /proc/self/ns/net".
class SystemError : public Error {
 public:
  SystemError(const std::string& attempted, int error_number);
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

/// Throws SystemError(attempted, errno) if `result` is negative, else returns it.
template <typename T>
T check_system(T result, const char* attempted);
[[noreturn]] void throw_errno(const std::string& attempted);

template <typename T>
T check_system(T result, const char* attempted) {
  if (result < 0) throw_errno(attempted);
  return result;
}

}  // namespace orrery
