// Emulated time stands still while anything in the guest computes, so a computation without an end
// would be a run without an end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.hh"

namespace orrery::e2e {
namespace {

using testing::HasSubstr;

TEST(Watchdog, EndsASpinningRunAndSaysWhoWaitsForWhat) {
  const Folder folder;
  // After the fifth result each node looks for the best of more candidates than can be drawn in the
  // test's time. The last node has the result first.
  std::ofstream(folder / "spin.yaml")
      << "orrery: 1\nname: spin\n"
         "cluster:\n  cost: model\n  nodes: [{name: \"n[0-1]\", device: raspberry-pi-4}]\n"
         "  network: {link: {delay: 1ms}}\n"
         "workload: {model: mlp, layers: [196, 16, 10], pool: 2, objective_images: 100,"
         " test_images: 100}\n"
         "runs:\n  - {name: spin, strategy: nd_cao, options: {candidates: 40000000},"
         " stop: {evaluations: 100}}\n"
         "limits: {watchdog: 10s}\n";
  const Result result = orrery({"run", folder / "spin.yaml", "--out", folder / "out", "--quiet"});
  EXPECT_EQ(result.status, 1) << result.err << result.out;
  EXPECT_EQ(processes_with(folder.path()), 0);
  const auto run = nlohmann::json::parse(read(folder / "out/run.json"));
  EXPECT_EQ(run["verdict"]["grade"], "invalid");
  const std::string verdict = run["verdict"].dump();
  EXPECT_THAT(verdict, HasSubstr("emulated time has stood still"));
  EXPECT_THAT(verdict, HasSubstr("n1 has been computing candidates x40000001x150 since"));
  EXPECT_THAT(verdict, testing::ContainsRegex(
                           "n0 has been waiting since [0-9.]+ s for message 5 on channel [0-9]+ "
                           "from n1"));
}

}  // namespace
}  // namespace orrery::e2e
