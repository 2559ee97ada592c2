// Replaces two functions that libraries call, in our programs: a definition in the program itself
// is the one that every shared library uses.

#include <absl/time/clock.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <ctime>

// Abseil's clock (and so gRPC's timers) estimates the time from the processor's time-stamp counter
// and asks the system only now and then. In the time-travel kernel the counter goes on with the
// host's time: how often the system is asked, and what is believed in between, would differ from
// run to run.
namespace absl {
ABSL_NAMESPACE_BEGIN

std::int64_t GetCurrentTimeNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

ABSL_NAMESPACE_END
}  // namespace absl

// gRPC asks to be woken once the rest of a message has arrived, but 16 KiB early, so that it can
// begin to read while the last packets come. Where a wake-up takes no time that gains nothing, and
// each of those packets wakes it once more: dear in a guest, where a system call costs the host two
// switches of context. So we ask for the whole rest.
extern "C" int setsockopt(int fd, int level, int name, const void* value,
                          socklen_t length) noexcept {
  constexpr int early = 16 * 1024;
  int low_water = 0;
  if (level == SOL_SOCKET && name == SO_RCVLOWAT && length == sizeof low_water) {
    std::memcpy(&low_water, value, sizeof low_water);
    if (low_water > 1) low_water += early;
    value = &low_water;
  }
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, name, value, length));
}
