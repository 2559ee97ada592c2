// One thread an agent waits for everything that gRPC does. More would only hand events to each
// other: gRPC lets one thread poll and wakes the others through locks.
#pragma once

#include <functional>

namespace orrery {

/// What a completion queue's tag points to; called by the polling thread, `ok` as gRPC means it.
struct Completion {
  std::function<void(bool ok)> done;
};

}  // namespace orrery
