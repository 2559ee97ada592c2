// Replaces four functions that libraries call, in our programs: a definition in the program itself
// is the one that every shared library uses.

#include <absl/time/clock.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
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

// gRPC lets the sender of a stream run ahead by GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, but gives
// the connection under it 64 KiB and what the reader has already asked for, whatever that argument
// says (chttp2's TransportFlowControl; only its own estimate from pings would raise it). A message
// that follows another then waits a round trip after its first 64 KiB, on a line that is idle. This
// is that class's target_window() const; its definition in a program hides the library's. Without
// it rings of long chunks are up to half slower than the network is (tests/exact/ring_test.cc).
extern "C" std::int64_t orrery_connection_window(const void*) asm(
    "_ZNK9grpc_core6chttp220TransportFlowControl13target_windowEv");

extern "C" std::int64_t orrery_connection_window(const void*) {
  return (std::int64_t{1} << 31) - 1;  // the most that HTTP/2 allows (RFC 9113, section 6.9.1)
}

// PSM2, which Debian 13's libtorch brings by way of Open MPI, measures the processor's counter as
// it is loaded: it sleeps by usleep() for 0.1 s and compares, up to ten times, until the rate is
// plausible (opa_time.c). In the time-travel kernel the counter goes on with the host's time, so
// how often it tries, and what every later instant is, would differ from run to run. There each of
// those sleeps lasts so long that no rate is ever plausible: it gives up after ten, always.
namespace {

bool loading = true;
// Constructors of libraries run before a program's own.
[[gnu::constructor]] void loaded() { loading = false; }

}  // namespace

extern "C" int usleep(useconds_t microseconds) {
  constexpr time_t too_long = 10;
  timespec span{static_cast<time_t>(microseconds / 1'000'000),
                static_cast<long>(microseconds % 1'000'000) * 1000};
  if (loading && std::getenv("ORRERY_TIME_TRAVEL")) span.tv_sec += too_long;
  return ::nanosleep(&span, nullptr);
}
