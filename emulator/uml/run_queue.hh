// How long the processes of a group were ready to run while the host's processors ran others. On a
// starved host a guest makes no progress and is not to blame.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace orrery::uml {

class RunQueueWait {
 public:
  explicit RunQueueWait(pid_t group) : group_(group) {}

  /// Seconds of waiting that came since the sample before, of all processes now in the group; one
  /// that is seen for the first time counts from then on. 0 where the kernel keeps no such account
  /// (/proc/PID/schedstat). A guest has one virtual processor, so of its processes hardly more than
  /// one is ready at a time, and the sum is a time and not a multiple of it.
  double sample();

 private:
  pid_t group_;
  std::map<pid_t, std::int64_t> waited_ns_;  ///< as of the last sample
};

}  // namespace orrery::uml
