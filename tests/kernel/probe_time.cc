// Emulated time: exact sleeps, free idle time, and where it starts.

#include <sched.h>
#include <sys/prctl.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "probe.hh"

namespace orrery::probe {
namespace {

const Registration sleep_exact{
    "sleep_exact", [] {
      // To the kernel a sleep may be late by the timer slack, which is there to save power.
      check(prctl(PR_SET_TIMERSLACK, 1), "prctl");
      std::int64_t worst = 0;
      for (const std::int64_t wanted :
           {1'000LL, 50'000LL, 1'000'000LL, 12'345'678LL, 1'000'000'000LL}) {
        const std::int64_t wake = now() + wanted;
        const timespec until{wake / 1'000'000'000, wake % 1'000'000'000};
        check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == 0 ? 0 : -1,
              "sleep");
        const std::int64_t late = now() - wake;
        expect(late >= 0, "never early");
        worst = std::max(worst, late);
      }
      report("worst_ns", worst);
    }};

const Registration sleep_free{"sleep_free", [] {
                                const std::int64_t start = now();
                                sleep(100);
                                report("slept_ns", now() - start);
                              }};

const Registration idle_ticks{"idle_ticks", [] {
                                // An idle hour must not wake the kernel thousands of times: it
                                // would cost host time.
                                const auto timer_interrupts = [] {
                                  const std::string line = run("grep -E 'timer' /proc/interrupts");
                                  return std::stoll(line.substr(line.find(':') + 1));
                                };
                                const auto before = timer_interrupts();
                                sleep(3600);
                                report("ticks", timer_interrupts() - before);
                              }};

const Registration coarse{"coarse_sleep", [] {
                            // poll() and friends are precise; what counts in ticks (here
                            // SO_RCVTIMEO-like waits, TCP's timers) is as fine as HZ. The
                            // resolution that the coarse clock has says what HZ is.
                            timespec resolution{};
                            check(clock_getres(CLOCK_MONOTONIC_COARSE, &resolution),
                                  "clock_getres");
                            report("tick_ns", resolution.tv_nsec);
                          }};

const Registration clock_cost{"clock_cost", [] {
                                // A loop that polls the clock must end: each reading moves it a
                                // little.
                                const std::int64_t start = now();
                                std::int64_t readings = 0;
                                while (now() < start + 1'000'000) ++readings;
                                report("ns_per_reading", 1'000'000 / readings);
                              }};

// Who looks for something and yields in between must come to where it is.
const Registration yield{"yield", [] {
                           const pid_t child = check(fork(), "fork");
                           if (child == 0) {
                             usleep(10'000);
                             _exit(0);
                           }
                           const std::int64_t start = now();
                           int yields = 0;
                           while (waitpid(child, nullptr, WNOHANG) == 0) {
                             sched_yield();
                             ++yields;
                           }
                           report("waited_ns", now() - start);
                           report("yields", yields);
                         }};

const Registration start_time{"start_time", [] { report("seconds", std::time(nullptr)); }};

}  // namespace
}  // namespace orrery::probe
