// Whole runs: every file of configs/ in short form, repeatability, faults, interruption.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
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

Result run_minimal(const std::string& out, const std::vector<std::string>& more = {}) {
  return orrery(
      join(join({"run", config("minimal.yaml"), "--out", out, "--quiet"}, short_sgd), more));
}

// Two processes that do nothing but use the host's processors.
class Spinners {
 public:
  Spinners() {
    for (pid_t& pid : pids_)
      if ((pid = ::fork()) == 0)
        for (std::atomic<int> i{0};; ++i) {
        }
  }
  ~Spinners() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  pid_t pids_[2];
};

TEST(Repeatability, SameStepsWhateverTheHostDoes) {
  const Folder folder;
  ASSERT_EQ(run_minimal(folder / "a").status, 0);
  {
    const Spinners spinners;
    ASSERT_EQ(run_minimal(folder / "b").status, 0);
  }
  const std::string steps = read(folder / "a/steps.csv");
  EXPECT_GT(steps.size(), 1000u);
  EXPECT_EQ(steps, read(folder / "b/steps.csv"));
  EXPECT_EQ(read(folder / "a/links.csv"), read(folder / "b/links.csv"));

  // More evaluations of test accuracy cost no time at all.
  ASSERT_EQ(run_minimal(folder / "c", {"--set", "evaluate={every: 5}"}).status, 0);
  EXPECT_EQ(steps, read(folder / "c/steps.csv"));
  EXPECT_GT(csv(folder / "c/evaluations.csv").size(), csv(folder / "a/evaluations.csv").size());

  // Another seed is another run.
  ASSERT_EQ(run_minimal(folder / "d", {"--seed", "2"}).status, 0);
  EXPECT_NE(steps, read(folder / "d/steps.csv"));

  // From what the directory holds; and wherever the results go.
  const std::string far = folder / ("e/" + std::string(200, 'e'));
  ASSERT_EQ(orrery({"rerun", folder / "a", "--out", far, "--quiet"}).status, 0);
  EXPECT_EQ(steps, read(far + "/steps.csv"));

  // Everything derived is a function of the records.
  const std::string report = read(folder / "a/report.html");
  ASSERT_EQ(orrery({"report", folder / "a"}).status, 0);
  EXPECT_EQ(report, read(folder / "a/report.html"));
  EXPECT_EQ(steps, read(folder / "a/steps.csv"));
}

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* now = std::getenv(name)) before_ = now;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  std::error_code none;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder, none))
    ++count;
  return count;
}

TEST(Links, AreMeasuredOnceAPlanAndThatChangesNothing) {
  if (!std::getenv("ORRERY_KERNEL"))
    GTEST_SKIP() << "ORRERY_KERNEL is not set; scripts/test.sh sets it";
  const Folder folder;
  const Variable cache("ORRERY_CACHE", folder / "cache");
  const std::string links = folder / "cache/links";
  ASSERT_EQ(run_minimal(folder / "a").status, 0);
  EXPECT_THAT(read(folder / "a/events.jsonl"), HasSubstr("\"earlier\":false"));
  EXPECT_EQ(files_in(links), 1u);

  ASSERT_EQ(run_minimal(folder / "b").status, 0);
  EXPECT_THAT(read(folder / "b/events.jsonl"), HasSubstr("\"earlier\":true"));
  EXPECT_THAT(read(folder / "b/run.json"), HasSubstr("for an earlier run of the same plan"));
  for (const char* file : {"/steps.csv", "/links.csv", "/traffic.csv", "/evaluations.csv"})
    EXPECT_EQ(read(folder / "a" + file), read(folder / "b" + file)) << file;

  // Another plan is measured for itself; so is the same one on request, or if what was kept is cut.
  ASSERT_EQ(run_minimal(folder / "c", {"--set", "cluster.network.link.delay=2ms"}).status, 0);
  EXPECT_THAT(read(folder / "c/events.jsonl"), HasSubstr("\"earlier\":false"));
  EXPECT_EQ(files_in(links), 2u);
  ASSERT_EQ(run_minimal(folder / "d", {"--measure-links"}).status, 0);
  EXPECT_THAT(read(folder / "d/events.jsonl"), HasSubstr("\"earlier\":false"));
  EXPECT_EQ(read(folder / "a/steps.csv"), read(folder / "d/steps.csv"));
  for (const auto& entry : std::filesystem::directory_iterator(links))
    std::filesystem::resize_file(entry, std::filesystem::file_size(entry) - 3);
  ASSERT_EQ(run_minimal(folder / "e").status, 0);
  EXPECT_THAT(read(folder / "e/events.jsonl"), HasSubstr("\"earlier\":false"));
  EXPECT_EQ(read(folder / "a/steps.csv"), read(folder / "e/steps.csv"));
}

TEST(Repeatability, AsynchronousStrategiesToo) {
  const Folder folder;
  const std::vector<std::string> arguments{
      "run",    config("quickstart.yaml"), "--quiet", "--only", "nd_cao_async",
      "--only", "parameter_server"};
  const std::vector<std::string> brief{"--set", "runs.nd_cao_async.stop.evaluations=60", "--set",
                                       "runs.parameter_server.stop.epochs=0.1"};
  for (const char* name : {"a", "b"})
    ASSERT_EQ(orrery(join(join(arguments, brief), {"--out", folder / name})).status, 0);
  for (const char* run : {"nd_cao_async", "parameter_server"}) {
    const std::string steps = read(folder / (std::string("a/") + run + "/steps.csv"));
    EXPECT_GT(steps.size(), 1000u);
    EXPECT_EQ(steps, read(folder / (std::string("b/") + run + "/steps.csv"))) << run;
  }
}

TEST(Quickstart, ShortForm) {
  const Folder folder;
  const Result result = orrery(
      {"run", config("quickstart.yaml"), "--out", folder / "q", "--json", "--quiet", "--set",
       "runs.nd_cao_sync.stop.evaluations=40", "--set", "runs.nd_cao_async.stop.evaluations=40",
       "--set", "runs.sgd.stop.epochs=0.1", "--set", "runs.parameter_server.stop.epochs=0.1"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.at("runs").size(), 4u);
  const std::set<std::string> keys{"name",
                                   "strategy",
                                   "seed",
                                   "verdict",
                                   "accuracy",
                                   "loss",
                                   "emulated_seconds",
                                   "host_seconds",
                                   "iterations",
                                   "evaluations",
                                   "samples_forward",
                                   "samples_backward",
                                   "bytes",
                                   "wire_bytes",
                                   "uncharged_ratio",
                                   "profile_hash"};
  for (const auto& run : json["runs"]) {
    std::set<std::string> found;
    for (const auto& [key, value] : run.items()) found.insert(key);
    EXPECT_EQ(found, keys);
    EXPECT_NE(run["verdict"], "invalid") << run;
    EXPECT_GT(run["emulated_seconds"].get<double>(), 0);
    const auto& bytes = run["bytes"];
    if (run["strategy"] == "nd_cao") {
      EXPECT_EQ(run["evaluations"], 40);
      EXPECT_GT(bytes.at("activation").get<std::int64_t>(), 0);
      EXPECT_EQ(bytes.value("gradient", 0), 0);
      EXPECT_EQ(bytes.value("parameter", 0), 0);
    } else {
      EXPECT_GT(bytes.at("gradient").get<std::int64_t>(), 0);
      EXPECT_EQ(bytes.value("activation", 0), 0);
    }
    EXPECT_TRUE(
        std::filesystem::exists(folder / ("q/" + run["name"].get<std::string>()) + "/steps.csv"));
  }
  EXPECT_THAT(read(folder / "q/report.html"), HasSubstr("nd_cao_async"));
}

TEST(Quickstart, WithoutAnEvent) {
  const Folder folder;
  const std::vector<std::string> base{
      "run",   config("quickstart.yaml"),    "--only", "sgd", "--set", "runs.sgd.stop.steps=30",
      "--set", "timeline.straggler.at=0.2s", "--quiet"};
  ASSERT_EQ(orrery(join(base, {"--out", folder / "with"})).status, 0);
  ASSERT_EQ(orrery(join(base, {"--out", folder / "without", "--without", "straggler"})).status, 0);
  const auto with = csv(folder / "with/steps.csv");
  const auto without = csv(folder / "without/steps.csv");
  ASSERT_EQ(with.size(), without.size());
  // The same numbers, later.
  EXPECT_EQ(with.back().at("loss"), without.back().at("loss"));
  EXPECT_GT(std::stod(with.back().at("t")), std::stod(without.back().at("t")));
}

TEST(Configs, Ring) {
  const Folder folder;
  const Result result = orrery({"run", config("ring.yaml"), "--out", folder / "r", "--quiet",
                                "--set", "runs.0.stop.steps=5"});
  EXPECT_EQ(result.status, 0) << result.err << result.out;
}

TEST(Configs, TwoSitesAndALossyTrunk) {
  const Folder folder;
  const Result result =
      orrery({"run", config("two_sites.yaml"), "--out", folder / "r", "--quiet", "--set",
              "runs.sgd.stop.epochs=0.1", "--set", "runs.parameter_server.stop.epochs=0.1"});
  EXPECT_EQ(result.status, 0) << result.err << result.out;
  std::set<std::string> properties;
  for (auto& row : csv(folder / "r/sgd/links.csv")) {
    if (row["link"] != "left->right") continue;
    properties.insert(row["property"]);
    if (row["property"] != "rate" && row["property"] != "burst") {
      EXPECT_EQ(row["verdict"], "ok");
    }
    EXPECT_GT(std::stoll(row["bytes"]), 1'000'000);
  }
  EXPECT_EQ(properties, (std::set<std::string>{"delay", "jitter", "rate", "loss", "burst"}));
}

TEST(Configs, WiresAndABackboneThatFails) {
  const Folder folder;
  const Result result = orrery({"run", config("wires.yaml"), "--out", folder / "r", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err << result.out;
  // The short way carries all, and less while it is slow; the long way round nothing.
  std::map<std::string, std::int64_t> bytes;
  for (auto& row : csv(folder / "r/links.csv")) bytes[row["link"]] = std::stoll(row["bytes"]);
  EXPECT_GT(bytes["rack0->rack1"], 1'000'000);
  EXPECT_EQ(bytes["rack0->router"], 0);
  double far[3] = {0, 0, 0};  // updates a second of the far rack's: before, slow, cut
  for (auto& row : csv(folder / "r/steps.csv")) {
    if (row["phase"] != "update" || std::stoi(row["worker"]) < 3) continue;
    const double t = std::stod(row["t"]);
    far[0] += t < 0.5 ? 2 : 0;
    far[1] += t > 0.6 && t < 1.5 ? 1 / 0.9 : 0;
    far[2] += t > 2.05 && t < 2.25 ? 1 / 0.2 : 0;
  }
  EXPECT_GT(far[0], 20);
  EXPECT_LT(far[1], far[0] / 3);
  EXPECT_EQ(far[2], 0);
}

TEST(Configs, FatTree) {
  const Folder folder;
  const Result result = orrery({"run", config("fat_tree.yaml"), "--out", folder / "r", "--quiet",
                                "--set", "runs.sgd.stop={steps: 3}"});
  EXPECT_EQ(result.status, 0) << result.err << result.out;
  EXPECT_EQ(csv(folder / "r/steps.csv").size(), 3u * 16u);
}

TEST(Configs, NdCaoBothEstimatesInBothModes) {
  const Folder folder;
  std::vector<std::string> command{"run", config("nd_cao.yaml"), "--out", folder / "n", "--quiet"};
  for (const char* name : {"monomial_sync", "monomial_async", "linear_sync", "linear_async"})
    command = join(command, {"--set", "runs." + std::string(name) + ".stop.evaluations=20"});
  const Result result = orrery(command);
  EXPECT_EQ(result.status, 0) << result.err << result.out;
}
TEST(Configs, ParameterServerInThreeModes) {
  const Folder folder;
  std::vector<std::string> command{"run", config("parameter_server.yaml"), "--out", folder / "p",
                                   "--quiet"};
  for (const char* number : {"0", "1", "2"})
    command = join(command, {"--set", "runs." + std::string(number) + ".stop.steps=40"});
  const Result result = orrery(command);
  EXPECT_EQ(result.status, 0) << result.err << result.out;
}
TEST(Configs, FaultsGoOnWithTheRest) {
  const Folder folder;
  const Result result = orrery({"run", config("faults.yaml"), "--out", folder / "f", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err << result.out;
  expect_faults_took_place(folder / "f");
}

TEST(Faults, AKilledNodeEndsSynchronousTrainingWithTheReason) {
  const Folder folder;
  std::ofstream(folder / "kill.yaml")
      << read(config("minimal.yaml"))
      << "timeline:\n  - {name: accident, at: 150ms, kill: {node: board1}}\n";
  const Result result = orrery({"run", folder / "kill.yaml", "--out", folder / "k", "--quiet"});
  EXPECT_EQ(result.status, 1);
  const auto run = nlohmann::json::parse(read(folder / "k/run.json"));
  EXPECT_EQ(run["verdict"]["grade"], "invalid");
  EXPECT_THAT(run["verdict"].dump(), HasSubstr("board1 was killed by 'accident'"));
  EXPECT_GT(csv(folder / "k/steps.csv").size(), 5u);  // what was done before is there
}

TEST(Interruption, CtrlCLeavesNothingAndAReadableRun) {
  const Folder folder;
  Background run({"run", config("minimal.yaml"), "--out", folder / "i", "--set",
                  "runs.sgd.stop.epochs=50", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds(12));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60), 130);
  EXPECT_EQ(processes_in(folder.path()), 0);
  const auto json = nlohmann::json::parse(read(folder / "i/run.json"));
  EXPECT_EQ(json["verdict"]["grade"], "invalid");
  EXPECT_TRUE(std::filesystem::exists(folder / "i/report.html"));
}

TEST(Interruption, KillLeavesNoProcess) {
  const Folder folder;
  Background run({"run", config("minimal.yaml"), "--out", folder / "i", "--set",
                  "runs.sgd.stop.epochs=50", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds(8));
  EXPECT_GT(processes_in(folder.path()), 1);
  run.signal(SIGKILL);
  run.wait(10);
  for (int i = 0; i < 100 && processes_in(folder.path()) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(processes_in(folder.path()), 0);
  EXPECT_EQ(orrery({"clean", folder / "i"}).status, 0);
  EXPECT_EQ(orrery({"report", folder / "i"}).status, 0);
}

TEST(TwoAtOnce, DoNotMeet) {
  const Folder folder;
  Background other(
      join({"run", config("minimal.yaml"), "--out", folder / "b", "--quiet"}, short_sgd));
  ASSERT_EQ(run_minimal(folder / "a").status, 0);
  EXPECT_EQ(other.wait(120), 0);
  EXPECT_EQ(read(folder / "a/steps.csv"), read(folder / "b/steps.csv"));
}

TEST(Ordinary, UserNeedsNoRoot) {
  if (::getuid() != 0) GTEST_SKIP() << "these tests run as an ordinary user already";
  const char* kernel = std::getenv("ORRERY_KERNEL");
  if (!kernel) GTEST_SKIP() << "ORRERY_KERNEL is not set; scripts/test.sh sets it";
  const Folder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  // The cache may lie where only root may read.
  std::filesystem::copy(kernel, folder / "linux");
  const std::vector<std::string> as_nobody{"env",           "ORRERY_KERNEL=" + (folder / "linux"),
                                           "setpriv",       "--reuid=65534",
                                           "--regid=65534", "--clear-groups"};
  // setpriv itself may reach what the user may not.
  const Result reach =
      run(join(as_nobody, {"test", "-r", config("minimal.yaml"), "-a", "-x", ORRERY_PROGRAM}));
  if (reach.status != 0) GTEST_SKIP() << "this build lies where an ordinary user may not read";
  const Result result = run(join(as_nobody, join({ORRERY_PROGRAM, "run", config("minimal.yaml"),
                                                  "--out", folder / "u", "--quiet"},
                                                 short_sgd)));
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace orrery::e2e
