// Replaces one function of Abseil in our programs.
//
// Abseil's clock (and so gRPC's timers) estimates the time from the processor's time-stamp counter and
// asks the system only now and then. In the time-travel kernel the counter goes on with the host's
// time: how often the system is asked, and what is believed in between, would differ from run to
// run. This definition, in the program itself, is the one that every library then calls.

#include <absl/time/clock.h>

#include <cstdint>
#include <ctime>

namespace absl {
ABSL_NAMESPACE_BEGIN

std::int64_t GetCurrentTimeNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

ABSL_NAMESPACE_END
}  // namespace absl
