// The host's processor cores, lent one kernel at a time. Where emulated time is the host's, a
// kernel must not be slowed by another node's kernel: it runs alone on a core, and is then made to
// last as long as its device would need, which takes no core.
#pragma once

#include <sched.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.hh"

namespace orrery {

/// A core's lease is a lock on its file. It ends with the process that holds it, and holds for all
/// processes that see the folder, in whatever containers they are.
class CoreLeases {
 public:
  /// One lease for each core that this process may run on. Makes the folder; throws SystemError.
  /// `first` (a rank) chooses which core is tried first.
  CoreLeases(const std::string& folder, int first);

  /// Waits for a core, runs `work` pinned to it, gives it back.
  void run(const std::function<void()>& work);

 private:
  struct Core {
    int number;
    FileDescriptor lock;
  };
  std::size_t take();

  std::vector<Core> cores_;
  std::size_t next_;
  cpu_set_t all_{};
};

}  // namespace orrery
