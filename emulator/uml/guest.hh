// A time-travel kernel as a child process that runs one command.
//
// Everything it makes belongs to a process lifetime: the guest dies with the process that started
// it (also by SIGKILL), its memory file has no name, and its state folder lies in the run
// directory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hh"
#include "emulator/uml/boot_file.hh"

namespace orrery::uml {

struct GuestSpec {
  std::string kernel;  ///< the program that scripts/build-kernel.sh made
  std::string init;    ///< orrery-init
  Bytes memory = Bytes::mib(512);
  std::string state_dir;                 ///< exists; boot file, log, status and sockets go there
  std::vector<std::string> writable;     ///< host folders that the guest may write to
  std::vector<Folder> folders;           ///< likewise, but seen at folder_path(name)
  std::vector<std::string> argv;         ///< the command and its arguments
  std::vector<std::string> environment;  ///< all of it, NAME=VALUE
  std::string cwd = "/";
  std::uint64_t entropy = 1;  ///< seed of the guest's random numbers
  /// A round of sched_yield() takes five microseconds: for programs that wait by looking and
  /// yielding.
  bool yield_takes_time = false;
};

class Guest {
 public:
  /// Boots. Throws MachineError (no memory, no place for the memory file) or SystemError.
  explicit Guest(GuestSpec spec);
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  pid_t pid() const { return pid_; }
  /// The command's exit status once the guest has ended; throws Error if it ended without one
  /// (killed, crashed, out of memory), with the end of its log.
  std::optional<int> poll();
  int wait();
  void kill();
  /// Host CPU time of the guest so far, seconds: user + system of all of its processes.
  double host_cpu_seconds() const;
  const std::string& log_path() const { return log_path_; }

 private:
  int finish();
  void remove_traces() const;

  GuestSpec spec_;
  std::string log_path_;
  std::string status_path_;
  pid_t pid_ = -1;
};

/// Whether `pid` is a guest whose state_dir that is, or one of its processes.
bool is_guest_of(pid_t pid, const std::string& state_dir);

/// Takes off what a kernel says as it ends, which is not its command's output. It differs by
/// series.
void remove_farewell(std::string& output);

/// The last of what a guest and its kernel printed.
std::string end_of_log(const std::string& path);

/// The folder for a guest's memory file: $TMPDIR if that is set, else the first of /dev/shm, /tmp,
/// /var/tmp and `fallback` that is writable, allows execution and has `need` free. Throws
/// MachineError that says what each one lacked.
std::string memory_folder(Bytes need, const std::string& fallback);

}  // namespace orrery::uml
