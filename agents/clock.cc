#include "agents/clock.hh"

#include <cerrno>
#include <ctime>
#include <limits>

#include "base/error.hh"

namespace orrery {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

}  // namespace

Instant MonotonicClock::now() {
  timespec time{};
  check_system(::clock_gettime(CLOCK_MONOTONIC, &time), "read CLOCK_MONOTONIC");
  return {static_cast<std::int64_t>(time.tv_sec) * ns_per_second + time.tv_nsec - epoch_ns_};
}

void MonotonicClock::sleep_until(Instant t) {
  // The end of a kernel on a device that is paused for ever is the last instant there is.
  constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t wake = epoch_ns_ > 0 && t.ns > latest - epoch_ns_ ? latest : t.ns + epoch_ns_;
  if (wake <= 0) return;
  const timespec until{static_cast<time_t>(wake / ns_per_second),
                       static_cast<long>(wake % ns_per_second)};
  for (;;) {
    const int error = ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    if (error == 0) return;
    if (error != EINTR) throw SystemError("sleep until an instant of CLOCK_MONOTONIC", error);
  }
}

void WallClock::sleep_until(Instant t) {
  MonotonicClock::sleep_until({t.ns - spin.ns});
  while (now() < t) {
  }
}

}  // namespace orrery
