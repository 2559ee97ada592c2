// Tick times against closed forms, in the simulated cluster. tests/exact/nd_cao_times_test.cc
// compares the same forms with real network stacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/agents/strategies/nd_cao/run_nd_cao.hh"
#include "tests/support/nd_cao_times.hh"

namespace orrery::test {
namespace {

constexpr int roomy = 30;  ///< a bound on staleness that hardly ever matters

/// Milliseconds of one evaluation's parts at each of four nodes, and of each hop.
struct Times {
  std::vector<double> forward;
  std::vector<double> move;
  double delay = 0;             ///< of a link
  double bytes_per_second = 0;  ///< 0: no serialisation

  void apply(SimSpec& spec) const {
    for (std::size_t i = 0; i < forward.size(); ++i) {
      spec.costs.push_back(std::make_shared<FixedCost>(
          std::map<KernelOp, Duration>{{KernelOp::forward, Duration::seconds(forward[i] * 1e-3)},
                                       {KernelOp::fill, Duration::seconds(move[i] * 1e-3)}}));
    }
    spec.link = {Duration::seconds(delay * 1e-3), bytes_per_second};
  }
  /// Time of `bytes` on a line, ms.
  double serialisation(std::int64_t bytes) const {
    return bytes_per_second > 0 ? static_cast<double>(bytes) / bytes_per_second * 1e3 : 0;
  }
  NdCaoTimes parts(const ToyRun& toy, const Placement& placement) const {
    NdCaoTimes times{forward, move, {}, delay + serialisation(16), 0};
    for (std::size_t i = 0; i + 1 < placement.nodes.size(); ++i) {
      const WorkloadView& work = toy.spec.workload;
      const double line =
          serialisation(16 + 4 * work.objective_images *
                                 work.model.elements_after(placement.nodes[i].last_layer - 1));
      times.hop.push_back(delay + line);
      times.line = std::max(times.line, line);
    }
    return times;
  }
};

std::vector<double> result_times_ms(const SimResult& result) {
  std::vector<double> times;
  for (const wire::Step& row : result.nodes.back().rows("evaluation")) {
    times.push_back(static_cast<double>(row.t()) * 1e-6);
  }
  return times;
}

double period(const SimResult& result) {
  const auto times = result_times_ms(result);
  const std::size_t begin = times.size() / 4;  // after the pipeline has settled
  return (times.back() - times[begin]) / static_cast<double>(times.size() - 1 - begin);
}

const std::vector<Times> cases{
    {{5, 5, 5, 5}, {1, 1, 1, 1}, 2, 0},  {{5, 20, 5, 5}, {1, 1, 1, 1}, 2, 0},
    {{5, 5, 5, 5}, {1, 60, 1, 1}, 2, 0}, {{5, 5, 5, 5}, {50, 1, 1, 1}, 10, 0},
    {{1, 2, 3, 4}, {5, 6, 7, 80}, 1, 0}, {{5, 5, 5, 5}, {1, 1, 1, 1}, 1, 50e3},
    {{5, 20, 5, 5}, {0, 0, 0, 0}, 0, 0},
};

TEST(NdCaoTiming, SyncFollowsItsRecursion) {
  for (const Times& times : cases) {
    ToyRun toy(4, 40);
    times.apply(toy.spec);
    const SimResult result = toy.run_ok();
    const auto measured = result_times_ms(result);
    const auto expected = sync_results(times.parts(toy, result.placement), 40);
    ASSERT_EQ(measured.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(measured[k], expected[k], 1e-3 * expected[k]) << k;
    }
  }
}

SimResult run_async(const Times& times, int in_flight, int staleness, ToyRun& toy) {
  times.apply(toy.spec);
  toy.set("mode", "async").set("in_flight", in_flight).set("staleness", staleness);
  toy.set("caching", OptionValue(false));
  return toy.run_ok();
}

void expect_form(const Times& times, int in_flight, int staleness, double tolerance) {
  ToyRun toy(4, 400);
  const SimResult result = run_async(times, in_flight, staleness, toy);
  const double expected = async_period(times.parts(toy, result.placement), in_flight, staleness);
  EXPECT_NEAR(period(result), expected, tolerance * expected)
      << "W " << in_flight << ", s " << staleness << ", forward "
      << testing::PrintToString(times.forward) << ", move " << testing::PrintToString(times.move);
}

TEST(NdCaoTiming, AsyncPeriodIsTheSlowestLineOrTheRoundOverW) {
  const std::vector<Times> quick_moves{
      {{5, 5, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 2, 0},
      {{5, 5, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 1, 50e3},
      {{1, 1, 1, 1}, {0.1, 0.1, 0.1, 0.1}, 1, 20e3},  // the first line
  };
  for (const Times& times : quick_moves)
    for (const int in_flight : {1, 2, 4}) expect_form(times, in_flight, roomy, 0.03);
}

TEST(NdCaoTiming, ABusyStageMovesOnlyWhenTheBoundOnStalenessStopsTheStarts) {
  for (const double move : {0.1, 5.0})
    for (const int staleness : {4, 6, roomy})
      expect_form({{5, 20, 5, 5}, {0.1, move, 0.1, 0.1}, 0, 0}, 2, staleness, 0.01);
  expect_form({{5, 20, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 2, 0}, 4, roomy, 0.03);
}

TEST(NdCaoTiming, DearMovesOfOneNode) {
  for (const int in_flight : {1, 2})
    for (std::size_t node = 0; node < 4; ++node)
      for (const double move : {3.0, 12.0, 40.0}) {
        Times times{{4, 5, 3, 4}, {0.01, 0.01, 0.01, 0.01}, 1, 0};
        times.move[node] = move;
        expect_form(times, in_flight, 4, 0.01);
      }
}

TEST(NdCaoTiming, ADearerMoveOfTheLastNodeCanMakeTheWholeFaster) {
  // At 12 ms each evaluation waits for a move of its own; at 14 two of them share one.
  const auto with = [](double move) {
    ToyRun toy(4, 400);
    return period(run_async({{4, 4, 4, 4}, {0, 0, 0, move}, 1, 0}, 2, roomy, toy));
  };
  EXPECT_NEAR(with(12), 16, 0.1);
  EXPECT_NEAR(with(14), 11, 0.1);
}

TEST(NdCaoTiming, DearMovesOfAllNodesCostMoreThanThoseOfAnyAndLessThanInSync) {
  const Times times{{4, 4, 4, 4}, {40, 40, 40, 40}, 1, 0};
  ToyRun async(4, 400);
  const SimResult result = run_async(times, 2, 4, async);
  ToyRun sync(4, 100);
  times.apply(sync.spec);
  EXPECT_GT(period(result), 1.1 * async_period(times.parts(async, result.placement), 2, 4));
  EXPECT_LT(period(result), 0.9 * period(sync.run_ok()));
}

TEST(NdCaoTiming, WithAStragglerTwoUnderWayTakeFourSeventhsOfSyncAndOneGainsNothing) {
  const Times times{{5, 20, 5, 5}, {0, 0, 0, 0}, 0, 0};
  ToyRun sync(4, 200);
  times.apply(sync.spec);
  const double in_sync = period(sync.run_ok());
  ToyRun one(4, 200);
  ToyRun two(4, 200);
  EXPECT_NEAR(period(run_async(times, 1, roomy, one)) / in_sync, 1.0, 0.01);
  EXPECT_NEAR(period(run_async(times, 2, roomy, two)) / in_sync, 4.0 / 7, 0.02);
}

TEST(NdCaoTiming, ASlowdownCostsWhatArithmeticSays) {
  const Times times{{5, 5, 5, 5}, {1, 1, 1, 1}, 2, 0};
  ToyRun even(4, 100);
  times.apply(even.spec);
  ToyRun slow = even;
  slow.spec.schedules.resize(4);
  slow.spec.schedules[1] = SpeedSchedule({{Instant{}, 1.0 / 3}});
  // Factor 3: its forward takes 10 ms more, and its move, 3 ms long, ends before the next
  // activation is there: result after 2, move 3; activation 2 + 1 + 5 + 2.
  EXPECT_NEAR(period(slow.run_ok()) - period(even.run_ok()), 10, 0.01);
}

TEST(NdCaoTiming, CachingSparesASlowFirstStageThatMovesSeldom) {
  // The first stage's forward is dear, and evaluations that others' moves caused find it unchanged.
  ToyRun with(4, 200);
  const Times times{{20, 1, 1, 1}, {0, 0, 0, 0}, 0.5, 0};
  times.apply(with.spec);
  with.set("mode", "async").set("staleness", 8);
  ToyRun without = with;
  without.set("caching", OptionValue(false));
  EXPECT_LT(period(with.run_ok()), period(without.run_ok()));
}

}  // namespace
}  // namespace orrery::test
