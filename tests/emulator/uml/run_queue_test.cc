#include "emulator/uml/run_queue.hh"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

namespace orrery::uml {
namespace {

using namespace std::chrono_literals;

// Processes of one group that spin, or sleep, all on one processor, until it goes.
class Group {
 public:
  Group(int size, bool spin) {
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    for (int i = 0; i < size; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::sched_setaffinity(0, sizeof one, &one);
        while (!spin) ::pause();
        for (volatile int n = 0;;) n = n + 1;
      }
      if (members_.empty()) leader_ = pid;
      ::setpgid(pid, leader_);
      members_.push_back(pid);
    }
  }
  ~Group() {
    ::kill(-leader_, SIGKILL);
    for (const pid_t pid : members_) ::waitpid(pid, nullptr, 0);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  pid_t id() const { return leader_; }

 private:
  pid_t leader_ = 0;
  std::vector<pid_t> members_;
};

double waited_in(pid_t group, std::chrono::milliseconds span) {
  RunQueueWait wait(group);
  std::this_thread::sleep_for(50ms);  // until all are where they belong
  wait.sample();
  std::this_thread::sleep_for(span);
  return wait.sample();
}

TEST(RunQueueWait, CountsTheTimeThatAProcessorWentToAnother) {
  if (!std::filesystem::exists("/proc/self/schedstat"))
    GTEST_SKIP() << "this kernel keeps no account of waiting (/proc/PID/schedstat)";
  const Group group(3, true);
  // One of the three runs at any time, so two wait: 0.8 s in all, more on a busy host.
  EXPECT_GT(waited_in(group.id(), 400ms), 0.5);
}

TEST(RunQueueWait, CountsNothingForWhoSleeps) {
  const Group group(3, false);
  EXPECT_LT(waited_in(group.id(), 400ms), 0.1);
}

TEST(RunQueueWait, IsZeroForAGroupThatIsGone) {
  RunQueueWait wait(1 << 22);  // above the largest pid there can be
  EXPECT_EQ(wait.sample(), 0);
  EXPECT_EQ(wait.sample(), 0);
}

}  // namespace
}  // namespace orrery::uml
