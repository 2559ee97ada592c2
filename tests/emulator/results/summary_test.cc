#include "emulator/results/summary.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emulator/results/table.hh"
#include "tests/emulator/results/records.hh"

namespace orrery::results {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunSummary of(const std::vector<wire::Record>& records) {
  const RunLog log = make_log(records);
  const RunDescription description;
  return summarise(description, log, judge(description, log));
}

TEST(Summary, OfASmallRun) {
  const RunSummary summary = of(small_run());
  EXPECT_EQ(summary.name, "sgd");
  EXPECT_EQ(summary.strategy, "sgd_allreduce");
  EXPECT_EQ(summary.seed, 7U);
  EXPECT_EQ(summary.accuracy, 0.625);
  EXPECT_EQ(summary.loss, (2.25 + 1.5) / 2);  // a's last loss that is a number, and b's
  EXPECT_EQ(summary.emulated_seconds, 0.006);
  EXPECT_EQ(summary.iterations, 2);
  EXPECT_EQ(summary.evaluations, 0);
  EXPECT_EQ(summary.samples_forward, 256);
  EXPECT_EQ(summary.samples_backward, 256);
  EXPECT_EQ(summary.bytes,
            (std::map<std::string, std::int64_t>{{"gradient", 16384}, {"scalar", 32}}));
  EXPECT_EQ(summary.wire_bytes, 15140);  // what left a node; not again where it arrives
  EXPECT_EQ(summary.uncharged_ratio, 0.01);
}

TEST(Summary, AGradientFreeRunHasItsBestLoss) {
  const RunSummary summary = of({started("n", "nd_cao", {"a"}), step(1, 0, 0, "evaluation", 2),
                                 step(2, 0, 1, "evaluation", 0.5), step(2, 0, 1, "move", nan),
                                 step(3, 0, 2, "evaluation", nan), step(4, 0, 3, "evaluation", 1)});
  EXPECT_EQ(summary.loss, 0.5);
  EXPECT_EQ(summary.evaluations, 4);
  EXPECT_EQ(summary.iterations, 4);
  EXPECT_TRUE(std::isnan(summary.accuracy));
}

TEST(Summary, AsynchronousUpdatesCountOnceEach) {
  EXPECT_EQ(of({step(1, 1, 1, "update", 2), step(1, 2, 1, "update", 1)}).iterations, 2);
}

TEST(Summary, JsonHasExactlyTheKeysThatTheManualLists) {
  std::vector<std::string> keys;
  const auto json = to_json(of(small_run()));
  for (const auto& [key, unused] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("name", "strategy", "seed", "verdict", "accuracy", "loss",
                                "emulated_seconds", "host_seconds", "iterations", "evaluations",
                                "samples_forward", "samples_backward", "bytes", "wire_bytes",
                                "uncharged_ratio", "profile_hash"));
}

TEST(Summary, WhatThereIsNotIsNull) {
  const auto json = to_json(of({}));
  EXPECT_TRUE(json.at("accuracy").is_null());
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_TRUE(json.at("uncharged_ratio").is_null());
  EXPECT_EQ(json.at("verdict"), "invalid");
  EXPECT_EQ(to_json(std::span<const RunSummary>()).dump(), "{\"runs\":[]}");
}

std::vector<RunSummary> suite() {
  RunSummary cao;
  cao.name = "cao_sync";
  cao.strategy = "nd_cao";
  cao.verdict = Grade::faithful;
  cao.accuracy = 0.7234;
  cao.loss = 0.6412;
  cao.emulated_seconds = 125.2;
  cao.evaluations = cao.iterations = 2000;
  cao.bytes = {{"activation", 1'500'000'000}, {"scalar", 48'000}};
  cao.wire_bytes = 1'600'000'000;
  RunSummary sgd;
  sgd.name = "sgd";
  sgd.strategy = "sgd_allreduce";
  sgd.verdict = Grade::degraded;
  sgd.accuracy = 0.853;
  sgd.loss = 0.41;
  sgd.emulated_seconds = 48.5;
  sgd.iterations = 5628;
  sgd.samples_backward = 360'000;
  sgd.bytes = {{"gradient", 481'000'000}};
  sgd.wire_bytes = 505'000'000;
  return {cao, sgd};
}

TEST(Table, IsAlignedAndSaysWhatShippedMore) {
  EXPECT_EQ(
      summary_table(suite()),
      "run       strategy       accuracy    loss    emulated     wire   activ.   grad.  param.   "
      "scalar        done  verdict\n"
      "────────────────────────────────────────────────────────────────────────────────────────"
      "──────────────────────────────\n"
      "cao_sync  nd_cao           72.3 %  0.6412  2 min 05 s  1.60 GB  1.50 GB       0       0  "
      "48.0 kB  2000 evals  faithful\n"
      "sgd       sgd_allreduce    85.3 %  0.4100      48.5 s   505 MB        0  481 MB       0   "
      "     0  5628 steps  degraded\n"
      "\n"
      "Gradient-free is not cheaper to ship here: cao_sync sends 1.50 GB as activations, 3.1 times "
      "the 481 MB that sgd sends as gradients.\n");
}

TEST(Table, SaysNothingWhereItIsNotSo) {
  auto runs = suite();
  runs[0].bytes["activation"] = 1000;
  EXPECT_EQ(shipping_remark(runs), "");
  runs.pop_back();
  EXPECT_EQ(shipping_remark(runs), "");
  EXPECT_EQ(summary_table({}), "No runs.\n");
}

std::size_t columns_of(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

TEST(Table, FitsTheWidth) {
  auto runs = suite();
  runs[0].name = "a_very_long_name_of_a_run_that_somebody_chose";
  runs[0].bytes["parameter"] = 12'300'000;
  for (const int width : {120, 110, 100}) {
    std::istringstream lines(summary_table(runs, {width, false}));
    for (std::string line; std::getline(lines, line) && !line.empty();)
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(Table, NamesDoNotReachTheTerminalAsCommands) {
  auto runs = suite();
  runs[0].name = "x\x1b[2J\n";
  const std::string table = summary_table(runs);
  EXPECT_THAT(table, HasSubstr("x?[2J?"));
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_THAT(summary_table(runs, {120, true}), HasSubstr("\x1b[32mfaithful\x1b[0m"));
}

}  // namespace
}  // namespace orrery::results
