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
      spec.costs.push_back(std::make_shared<FixedCost>(std::map<KernelOp, Duration>{
          {KernelOp::forward, Duration::seconds(forward[i] * 1e-3)},
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
  double scalar() const {
    return delay + (bytes_per_second > 0 ? 16 / bytes_per_second * 1e3 : 0);
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
    {{5, 5, 5, 5}, {1, 1, 1, 1}, 2, 0},     {{5, 20, 5, 5}, {1, 1, 1, 1}, 2, 0},
    {{5, 5, 5, 5}, {1, 60, 1, 1}, 2, 0},    {{5, 5, 5, 5}, {50, 1, 1, 1}, 10, 0},
    {{1, 2, 3, 4}, {5, 6, 7, 80}, 1, 0},    {{5, 5, 5, 5}, {1, 1, 1, 1}, 1, 50e3},
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
        const double own = k == 0 ? 0
                                  : published + (i == 3 ? 0 : times.scalar()) + times.move[i];
        const double arrives =
            i == 0 ? 0
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

/// Rule 11's period of the asynchronous mode.
double async_period(const Times& times, const SimResult& result, const ToyRun& toy, int in_flight) {
  const ModelSpec& model = toy.spec.workload.model;
  double busiest = 0;
  double line = 0;
  double round = times.scalar();
  for (std::size_t i = 0; i < 4; ++i) {
    busiest = std::max(busiest, times.forward[i] + times.move[i]);
    round += times.forward[i];
    if (i == 3) continue;
    round += times.hop(model, result.placement.nodes[i], toy.spec.workload.objective_images);
    line = std::max(line, times.serialisation(model, result.placement.nodes[i],
                                              toy.spec.workload.objective_images));
  }
  return std::max({busiest, line, round / in_flight});
}

TEST(NdCaoTiming, AsyncPrint) {
  for (const Times& times : cases) {
    for (const int in_flight : {1, 2, 4}) {
      ToyRun toy(4, 400);
      times.apply(toy.spec);
      toy.set("mode", "async").set("in_flight", in_flight).set("staleness", 30);
      toy.set("caching", OptionValue(false));
      const SimResult result = toy.run_ok();
      printf("W %d measured %.3f expected %.3f\n", in_flight, period(result),
             async_period(times, result, toy, in_flight));
    }
  }
}

}  // namespace
}  // namespace orrery::test
