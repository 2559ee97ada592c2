// A program that we started and that does not outlive us.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace orrery::emulator {

struct ChildSpec {
  std::vector<std::string> argv;         ///< the program's path first
  std::vector<std::string> environment;  ///< all of it, NAME=VALUE
  std::string log_path;                  ///< of what it prints, on both streams
};

/// In a process group of its own, so that a terminal's Ctrl-C is ours to pass on; killed when we
/// end, however we do.
class Child {
 public:
  /// Throws SystemError.
  explicit Child(ChildSpec spec);
  /// Kills it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its exit status (128 + the signal that ended it), once it has ended.
  std::optional<int> poll();
  void kill();

 private:
  pid_t pid_ = -1;
};

}  // namespace orrery::emulator
