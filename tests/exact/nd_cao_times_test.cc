// Tick times of nd_cao in the exact engine against their closed forms (docs/nd-cao.md): sync within
// half a percent, async within 3 %.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/exact/guest_output.hh"
#include "tests/exact/nd_cao_cases.hh"

namespace orrery::test {
namespace {

const NdCaoCase& case_of(const std::string& name) {
  for (const NdCaoCase& c : nd_cao_cases())
    if (name == c.name) return c;
  throw std::logic_error("no case " + name);
}

NdCaoTimes times_of(const NdCaoCase& c) {
  NdCaoTimes times{c.forward, c.move, std::vector<double>(c.forward.size() - 1, c.delay), c.delay,
                   0};
  if (c.straggler >= 0) {
    times.forward[static_cast<std::size_t>(c.straggler)] *= 2;
    times.move[static_cast<std::size_t>(c.straggler)] *= 2;
  }
  if (c.slow_line_mbit > 0) {
    // Node 1's activations are five wide; a frame of 1538 bytes carries 1448.
    const double bytes = 4.0 * 5 * static_cast<double>(c.images) / 1448 * 1538;
    times.line = bytes * 8 / (c.slow_line_mbit * 1e6) * 1e3;
    times.hop[1] += times.line;
  }
  return times;
}

/// When the results were published, ms.
std::vector<double> results_of(const std::string& name) {
  const Output output = run_in_kernel(ND_CAO_TIMES_GUEST, name);
  EXPECT_EQ(output.status, 0) << output.text;
  std::istringstream words(lines_by_name(output.text)[name]);
  std::vector<double> results;
  for (double t = 0; words >> t;) results.push_back(t * 1e-6);
  EXPECT_EQ(static_cast<int>(results.size()), case_of(name).evaluations) << output.text;
  return results;
}

class Sync : public testing::TestWithParam<const char*> {};

TEST_P(Sync, EveryResultComesWhenTheRecursionSays) {
  const NdCaoCase c = case_of(GetParam());
  const auto measured = results_of(c.name);
  const auto expected = sync_results(times_of(c), c.evaluations);
  for (std::size_t k = 0; k < std::min(measured.size(), expected.size()); ++k)
    EXPECT_NEAR(measured[k], expected[k], 0.005 * expected[k]) << k;
}

INSTANTIATE_TEST_SUITE_P(NdCao, Sync, testing::Values("sync", "sync_dear_move", "sync_straggler"),
                         [](const auto& test) { return std::string(test.param); });

class Async : public testing::TestWithParam<const char*> {};

TEST_P(Async, ThePeriodIsThatOfTheClosedForm) {
  const NdCaoCase c = case_of(GetParam());
  const auto measured = results_of(c.name);
  ASSERT_GT(measured.size(), 40u);
  // A whole number of any pattern's rounds hardly fits; over many it matters little.
  const std::size_t begin = measured.size() / 4;
  const double period =
      (measured.back() - measured[begin]) / static_cast<double>(measured.size() - 1 - begin);
  const double expected = std::string(c.move_after) == "trial"
                              ? async_trial_period(times_of(c), c.in_flight)
                              : async_period(times_of(c), c.in_flight, c.staleness);
  RecordProperty("measured_ms", std::to_string(period));
  RecordProperty("expected_ms", std::to_string(expected));
  EXPECT_NEAR(period, expected, 0.03 * expected);
}

INSTANTIATE_TEST_SUITE_P(NdCao, Async,
                         testing::Values("async_round", "async_round_of_four", "async_one",
                                         "async_busy_stage", "async_line", "async_dear_first",
                                         "async_dear_middle", "async_dear_last_apart",
                                         "async_dear_last_together", "trial_round",
                                         "trial_dear_last"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace orrery::test
