// Whole runs by this host's clock. How close their times come is measured in benchmarks, for hosts
// are shared; here it is what must hold however busy the host is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/program.hh"

namespace orrery::e2e {
namespace {

using testing::HasSubstr;

const std::vector<std::string> short_sgd{"--set", "runs.sgd.stop.epochs=0.05"};

std::vector<std::string> join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Result run_minimal(const std::string& out, const std::string& engine,
                   const std::vector<std::string>& more = {}) {
  return orrery(join(
      join({"run", config("minimal.yaml"), "--engine", engine, "--out", out, "--quiet"}, short_sgd),
      more));
}

class Live : public testing::Test {
 protected:
  void SetUp() override {
    const Result probe = run({NETSHAPE_PROGRAM, "probe"});
    if (probe.status != 0) GTEST_SKIP() << "no live runs on this host:\n" << probe.out;
  }
  Folder folder_;
};

// It came to its end, whatever the verdict on a host that others use, too.
void expect_ended(const Result& result, const std::string& directory) {
  EXPECT_THAT(read(directory + "/events.jsonl"), HasSubstr("\"type\":\"run_ended\",\"ok\":true"))
      << result.out << result.err;
}

// (node, step) → loss
std::map<std::pair<std::string, std::string>, std::string> losses(const std::string& directory) {
  std::map<std::pair<std::string, std::string>, std::string> all;
  for (auto& row : csv(directory + "/steps.csv")) all[{row["node"], row["step"]}] = row["loss"];
  return all;
}

TEST_F(Live, ComputesWhatExactComputes) {
  const Result live = run_minimal(folder_ / "live", "live");
  expect_ended(live, folder_ / "live");
  ASSERT_EQ(run_minimal(folder_ / "exact", "exact").status, 0);
  const auto computed = losses(folder_ / "live");
  EXPECT_GT(computed.size(), 40u);
  EXPECT_EQ(computed, losses(folder_ / "exact"));

  const auto json = nlohmann::json::parse(read(folder_ / "live/run.json"));
  EXPECT_EQ(json["engine"], "live");
  EXPECT_THAT(json["host"]["network"], testing::AnyOf("kernel", "fabric"));
  EXPECT_THAT(json["verdict"].dump(), HasSubstr("overrun_share"));
  // Nothing is faster than what it was asked to be.
  const auto exact = nlohmann::json::parse(read(folder_ / "exact/run.json"));
  EXPECT_GT(json["summary"]["emulated_seconds"].get<double>(),
            0.98 * exact["summary"]["emulated_seconds"].get<double>());
}

TEST_F(Live, TheTimelineTakesPlace) {
  const Result result =
      orrery({"run", config("faults.yaml"), "--engine", "live", "--out", folder_ / "f", "--quiet"});
  expect_ended(result, folder_ / "f");
  expect_faults_took_place(folder_ / "f");
}

TEST_F(Live, AnOvercommittedHostMakesItInvalid) {
  // A thousand times as fast as a Raspberry Pi is faster than any host, and nothing else takes
  // time.
  const Result result =
      run_minimal(folder_ / "o", "live",
                  {"--set",
                   "cluster.devices={fast: {profile: "
                   "raspberry-pi-4, speed: 1000}}",
                   "--set", "cluster.nodes=[{name: \"board[0-1]\", device: fast}]", "--set",
                   "cluster.network.link={delay: 10us}"});
  EXPECT_EQ(result.status, 1) << result.out << result.err;
  const auto json = nlohmann::json::parse(read(folder_ / "o/run.json"));
  EXPECT_EQ(json["verdict"]["grade"], "invalid");
  EXPECT_THAT(json["verdict"].dump(), HasSubstr("take the exact engine"));
}

TEST_F(Live, CtrlCLeavesNothingAndAReadableRun) {
  Background run({"run", config("minimal.yaml"), "--engine", "live", "--out", folder_ / "i",
                  "--set", "runs.sgd.stop.epochs=500", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds(8));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60), 130);
  EXPECT_EQ(processes_in(folder_.path()), 0);
  const auto json = nlohmann::json::parse(read(folder_ / "i/run.json"));
  EXPECT_EQ(json["verdict"]["grade"], "invalid");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "i/report.html"));
}

TEST_F(Live, KillLeavesNoProcess) {
  Background run({"run", config("minimal.yaml"), "--engine", "live", "--out", folder_ / "i",
                  "--set", "runs.sgd.stop.epochs=500", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds(5));
  EXPECT_GT(processes_in(folder_.path()), 1);
  run.signal(SIGKILL);
  run.wait(10);
  for (int i = 0; i < 100 && processes_in(folder_.path()) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(processes_in(folder_.path()), 0);
}

TEST_F(Live, AnOrdinaryUserNeedsNoRoot) {
  if (::getuid() != 0) GTEST_SKIP() << "these tests run as an ordinary user already";
  const std::vector<std::string> as_nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                           "--clear-groups"};
  const Result reach =
      run(join(as_nobody, {"test", "-r", config("minimal.yaml"), "-a", "-x", ORRERY_PROGRAM}));
  if (reach.status != 0) GTEST_SKIP() << "this build lies where an ordinary user may not read";
  const Result probe = run(join(as_nobody, {NETSHAPE_PROGRAM, "probe"}));
  if (probe.status != 0) GTEST_SKIP() << "no live runs for an ordinary user here:\n" << probe.out;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  const Result result =
      run(join(as_nobody, join({ORRERY_PROGRAM, "run", config("minimal.yaml"), "--engine", "live",
                                "--out", folder_ / "u", "--quiet"},
                               short_sgd)));
  expect_ended(result, folder_ / "u");
}

TEST_F(Live, ABackendThatTheHostLacksIsSaidBeforeAnythingStarts) {
  const Result probe = run({NETSHAPE_PROGRAM, "probe"});
  if (probe.out.find("kernel backend: yes") != std::string::npos)
    GTEST_SKIP() << "this host's kernel has netem";
  const Result result = run_minimal(folder_ / "k", "live", {"--backend", "kernel"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("sch_netem"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "k"));
}

}  // namespace
}  // namespace orrery::e2e
