// Networks that outlive a command: up, show, set, exec, capture, down, on this host and in the
// time-travel kernel, whoever is killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/e2e/program.hh"

namespace orrery::e2e {
namespace {

using testing::HasSubstr;

Result netshape(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), NETSHAPE_PROGRAM);
  return run(arguments);
}

class Up : public testing::Test {
 protected:
  void SetUp() override {
    const Result probe = netshape({"probe"});
    if (probe.status != 0) GTEST_SKIP() << "no network can be built on this host:\n" << probe.out;
    // Networks of this test alone.
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    std::ofstream(file()) << "netshape: 1\nnodes: [a, b, c]\nnetwork: {link: {delay: 5ms}}\n";
  }
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }
  std::string file() const { return folder_ / "net.yaml"; }
  // Of a ping of one packet, after one that found the way.
  static double round_trip_ms(const std::string& from, const std::string& to) {
    const Result result = netshape({"exec", from, "--", "ping", "-c", "4", "-i", "0.2", "-q", to});
    const std::size_t at = result.out.find("= ");
    return at == std::string::npos ? -1 : std::strtod(result.out.c_str() + at + 2, nullptr);
  }
  const Folder folder_;
};

TEST_F(Up, IsThereUntilItIsTakenDown) {
  const Result up = netshape({"up", file()});
  ASSERT_EQ(up.status, 0) << up.err;
  EXPECT_EQ(up.out, "net is up: 3 nodes, 3 links\n");
  EXPECT_GE(round_trip_ms("a", "b"), 20);
  EXPECT_LT(round_trip_ms("a", "b"), 40);

  EXPECT_EQ(netshape({"set", "a", "delay=50ms", "loss_burst=1"}).status, 0);
  EXPECT_GE(round_trip_ms("a", "b"), 110);
  EXPECT_LT(round_trip_ms("c", "b"), 40);
  const Result one_way = netshape({"set", "switch->c", "delay=30ms"});
  EXPECT_EQ(one_way.out, "switch->c: 30ms, no rate\n");
  EXPECT_GE(round_trip_ms("c", "b"), 45);

  // What `show` prints, `up` takes.
  const Result shown = netshape({"show"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::ofstream(folder_ / "again.yaml") << shown.out;
  const Result second = netshape({"up", folder_ / "again.yaml"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(netshape({"show", "again"}).out, shown.out);
  EXPECT_THAT(netshape({"show"}).err, HasSubstr("name one of again, net"));
  EXPECT_EQ(netshape({"down", "again"}).status, 0);
  EXPECT_EQ(netshape({"down"}).out, "net is down\n");
  EXPECT_EQ(netshape({"down"}).status, 2);
  EXPECT_EQ(processes_in(folder_.path()), 0);
}

TEST_F(Up, SaysWhatIsWrongAndChangesNothing) {
  ASSERT_EQ(netshape({"up", file()}).status, 0);
  const std::string before = netshape({"show"}).out;
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"up", file()},
                                             {"set", "nobody", "delay=1ms"},
                                             {"set", "a->b", "delay=1ms"},
                                             {"set", "a", "delay=1"},
                                             {"set", "a", "dealy=1ms"},
                                             {"set", "a", "jitter=9ms"},
                                             {"exec", "nobody", "--", "true"},
                                             {"exec", "--network", "other", "a", "--", "true"},
                                             {"up", file(), "--name", "../../x"},
                                             {"up", folder_ / "none.yaml"}}) {
    const Result result = netshape(wrong);
    EXPECT_EQ(result.status, 2) << wrong[0] << " " << wrong[1] << result.out;
    EXPECT_GT(result.err.size(), 20u);
  }
  EXPECT_EQ(netshape({"show"}).out, before);
  EXPECT_EQ(netshape({"exec", "a", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(netshape({"down"}).status, 0);
}

TEST_F(Up, CapturesForWireshark) {
  ASSERT_EQ(netshape({"up", file()}).status, 0);
  Result captured;
  std::thread capture([&] {
    captured = netshape({"capture", "b", "-w", folder_ / "b.pcapng", "--for", "2500ms"});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_GE(round_trip_ms("a", "b"), 20);
  capture.join();
  EXPECT_EQ(captured.status, 0) << captured.err;
  EXPECT_THAT(captured.err, HasSubstr("8 packets"));
  netshape({"down"});
  const Result listed = run({"tcpdump", "-n", "-r", folder_ / "b.pcapng"});
  if (listed.status == 127) GTEST_SKIP() << "tcpdump is not installed, which would read the file";
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("10.0.0.1 > 10.0.0.2: ICMP echo request"));
}

// Twenty random moments of up, set and down; then `down`, and nothing is left.
TEST_F(Up, WhoeverIsKilledNothingIsLeft) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> moment(0, 60'000);
  for (int i = 0; i < 20; ++i) {
    const bool first = i % 3 == 0;
    if (!first) {
      ASSERT_EQ(netshape({"up", file()}).status, 0) << i;
    }
    const std::vector<std::vector<std::string>> commands{
        {"up", file()}, {"set", "a", "delay=9ms"}, {"down"}};
    std::vector<std::string> argv = commands[static_cast<std::size_t>(i % 3)];
    argv.insert(argv.begin(), NETSHAPE_PROGRAM);
    const pid_t child = ::fork();
    if (child == 0) {
      std::vector<char*> list;
      for (std::string& word : argv) list.push_back(word.data());
      list.push_back(nullptr);
      ::execv(list[0], list.data());
      ::_exit(127);
    }
    ::usleep(static_cast<useconds_t>(moment(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    netshape({"down", "net"});
    for (int wait = 0; wait < 100 && processes_in(folder_.path()) > 0; ++wait) ::usleep(20'000);
    EXPECT_EQ(processes_in(folder_.path()), 0) << i;
    EXPECT_EQ(netshape({"show", "net"}).status, 2) << i;
  }
}

TEST_F(Up, AKeeperThatIsKilledTakesItsNetworkAlong) {
  ASSERT_EQ(netshape({"up", file()}).status, 0);
  const Result found = run({"pgrep", "-f", file()});
  ASSERT_EQ(found.status, 0);
  ::kill(static_cast<pid_t>(std::stol(found.out)), SIGKILL);
  for (int wait = 0; wait < 100 && processes_in(folder_.path()) > 0; ++wait) ::usleep(20'000);
  const Result lost = netshape({"exec", "a", "--", "true"});
  EXPECT_EQ(lost.status, 2) << lost.err;
  EXPECT_EQ(netshape({"up", file()}).status, 0);  // over what is left of the socket
  EXPECT_EQ(netshape({"down"}).status, 0);
}

// The same in the time-travel kernel, whose netem it uses: figures there are exact.
TEST(UpInTheTimeTravelKernel, IsTheSame) {
  const Folder folder;
  std::ofstream(folder / "net.yaml")
      << "netshape: 1\nnodes: [a, b]\nnetwork: {link: {delay: 5ms}}\n";
  const Result result = netshape(
      {"run", folder / "net.yaml", "--write", folder.path(), "--", "bash", "-ec",
       "unset NETSHAPE_NODES; netshape up " + (folder / "net.yaml") +
           "; netshape exec a -- ping -c 2 -q b; netshape set a delay=50ms; netshape exec a -- "
           "ping -c 2 -q b; netshape down; "
           "! netshape down"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("rtt min/avg/max/mdev = 20.00"));
  EXPECT_THAT(result.out, HasSubstr("rtt min/avg/max/mdev = 110.00"));
}

}  // namespace
}  // namespace orrery::e2e
