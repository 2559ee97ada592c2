// Tick times against closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/agents/strategies/nd_cao/run_nd_cao.hh"

namespace orrery::test {
namespace {

/// Milliseconds of one evaluation's parts at each node, and of each hop.
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
  /// Time of a hop from stage i to the next, ms.
  double hop(const ModelSpec& model, const NodePlacement& from, std::int64_t samples) const {
    if (bytes_per_second <= 0) return delay;
    return delay + serialisation(model, from, samples);
  }
  double serialisation(const ModelSpec& model, const NodePlacement& from,
                       std::int64_t samples) const {
    if (bytes_per_second <= 0) return 0;
    const auto bytes = 16 + 4 * samples * model.elements_after(from.last_layer - 1);
    return static_cast<double>(bytes) / bytes_per_second * 1e3;
  }
  double scalar() const { return delay + (bytes_per_second > 0 ? 16 / bytes_per_second * 1e3 : 0); }
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
    const ModelSpec& model = toy.spec.workload.model;
    const auto measured = result_times_ms(result);
    // t[i]: when stage i has forwarded; r[i]: when the result before is there.
    std::vector<double> expected;
    std::vector<double> t(4, 0.0);
    for (int k = 0; k < 40; ++k) {
      const double published = t[3];
      for (std::size_t i = 0; i < 4; ++i) {
        const double own = k == 0 ? 0 : published + (i == 3 ? 0 : times.scalar()) + times.move[i];
        const double arrives = i == 0 ? 0
                                      : t[i - 1] + times.hop(model, result.placement.nodes[i - 1],
                                                             toy.spec.workload.objective_images);
        t[i] = std::max(own, arrives) + times.forward[i];
      }
      expected.push_back(t[3]);
    }
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(measured[k], expected[k], 0.03 * expected[k]) << k;
    }
    EXPECT_NEAR(measured.back(), expected.back(), 1e-3 * expected.back());
  }
}

/// Rule 11's period of the asynchronous mode. Node 0 moves its own blocks before it starts an
/// evaluation, so its move is in the round; the others move while activations are on their way. A
/// dear move weighs u/W on its node, since forwards go before it; f + u bounds it from above.
double async_period(const Times& times, const SimResult& result, const ToyRun& toy, int in_flight,
                    double move_share) {
  const ModelSpec& model = toy.spec.workload.model;
  double busiest = 0;
  double line = 0;
  double round = times.scalar() + times.move[0] * move_share;
  for (std::size_t i = 0; i < 4; ++i) {
    busiest = std::max(busiest, times.forward[i] + times.move[i] * move_share);
    round += times.forward[i];
    if (i == 3) continue;
    round += times.hop(model, result.placement.nodes[i], toy.spec.workload.objective_images);
    line = std::max(line, times.serialisation(model, result.placement.nodes[i],
                                              toy.spec.workload.objective_images));
  }
  return std::max({busiest, line, round / in_flight});
}

SimResult run_async(const Times& times, int in_flight, ToyRun& toy) {
  times.apply(toy.spec);
  toy.set("mode", "async").set("in_flight", in_flight).set("staleness", 30);
  toy.set("caching", OptionValue(false));
  return toy.run_ok();
}

TEST(NdCaoTiming, AsyncPeriodIsTheBusiestNodeTheSlowestLineOrTheRoundOverW) {
  const std::vector<Times> quick_moves{
      {{5, 5, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 2, 0},   // the round
      {{5, 20, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 2, 0},  // the round, then the busiest node
      {{5, 20, 5, 5}, {0, 0, 0, 0}, 0, 0},          // the same without a network
      {{5, 5, 5, 5}, {0.1, 0.1, 0.1, 0.1}, 1, 50e3},
      {{1, 1, 1, 1}, {0.1, 0.1, 0.1, 0.1}, 1, 20e3},  // the first line
  };
  for (const Times& times : quick_moves) {
    for (const int in_flight : {1, 2, 4}) {
      ToyRun toy(4, 200);
      const SimResult result = run_async(times, in_flight, toy);
      const double expected = async_period(times, result, toy, in_flight, 1.0);
      EXPECT_NEAR(period(result), expected, 0.03 * expected)
          << "W " << in_flight << " forward " << times.forward[1];
    }
  }
}

TEST(NdCaoTiming, ASlowMoveWeighsOnlyOnceInWEvaluations) {
  // By either rule: the W forwards that came during a move go before the next one.
  const Times times{{1, 2, 3, 4}, {0, 0, 0, 80}, 1, 0};
  for (const char* rule : {"trial", "loss"}) {
    ToyRun toy(4, 400);
    toy.set("move_after", rule);
    const SimResult result = run_async(times, 2, toy);
    const double expected = async_period(times, result, toy, 2, 0.5);
    EXPECT_NEAR(period(result), expected, 0.03 * expected) << rule;
    EXPECT_LT(period(result), async_period(times, result, toy, 2, 1.0)) << rule;
  }
}

TEST(NdCaoTiming, Node0MovesBeforeItStarts) {
  const Times times{{2, 2, 2, 2}, {6, 0, 0, 0}, 3, 0};
  ToyRun toy(4, 200);
  const SimResult result = run_async(times, 2, toy);
  const double expected = async_period(times, result, toy, 2, 1.0);
  EXPECT_NEAR(period(result), expected, 0.03 * expected);
}

TEST(NdCaoTiming, WithAStragglerTwoUnderWayTakeFourSeventhsOfSyncAndOneGainsNothing) {
  const Times times{{5, 20, 5, 5}, {0, 0, 0, 0}, 0, 0};
  ToyRun sync(4, 200);
  times.apply(sync.spec);
  const double in_sync = period(sync.run_ok());
  ToyRun one(4, 200);
  ToyRun two(4, 200);
  EXPECT_NEAR(period(run_async(times, 1, one)) / in_sync, 1.0, 0.01);
  EXPECT_NEAR(period(run_async(times, 2, two)) / in_sync, 4.0 / 7, 0.02);
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
  with.set("mode", "async").set("staleness", 8).set("move_after", "loss");
  ToyRun without = with;
  without.set("caching", OptionValue(false));
  EXPECT_LT(period(with.run_ok()), period(without.run_ok()));
}

}  // namespace
}  // namespace orrery::test
