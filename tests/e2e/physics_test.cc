// What stragglers and pauses of the timeline cost, in whole runs with `cost: model`, whose every
// duration is known: each step's time is predicted from the kernels' arithmetic.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/program.hh"

namespace orrery::e2e {
namespace {

/// From `begin` to `end` a node works at `factor` of its speed; a pause is 0. All in seconds.
struct Window {
  double begin = 0;
  double end = 0;
  double factor = 1;
  bool holds(double t) const { return begin <= t && t < end; }
};

/// When `work` seconds of work end that begin at `t`.
double finish(double t, double work, const Window& window) {
  if (t < window.begin) {
    const double before = std::min(work, window.begin - t);
    t += before;
    work -= before;
  }
  if (work <= 0 && !(window.holds(t) && window.factor == 0)) return t;
  if (window.holds(t)) {
    const double inside = std::min(work, (window.end - t) * window.factor);
    if (window.factor > 0 && inside == work) return t + work / window.factor;
    t = window.end;
    work -= inside;
  }
  return t + work;
}

std::string seconds(double t) { return std::to_string(std::llround(t * 1e6)) + "us"; }

/// The last part of an experiment file.
std::string slow(const std::string& node, const Window& window) {
  return "timeline:\n  - {name: event, at: " + seconds(window.begin) + ", slow: {node: " + node +
         ", factor: " + std::to_string(1 / window.factor) +
         ", for: " + seconds(window.end - window.begin) + "}}\n";
}
std::string pause(const std::string& node, const Window& window) {
  return "timeline:\n  - {name: event, at: " + seconds(window.begin) + ", pause: {node: " + node +
         ", for: " + seconds(window.end - window.begin) + "}}\n";
}

/// Times of the rows of one phase that one node wrote. Throws if the run failed.
std::vector<double> times(const std::string& experiment, const std::string& phase,
                          const std::string& node) {
  const Folder folder;
  std::ofstream(folder / "e.yaml") << experiment;
  const Result result = orrery({"run", folder / "e.yaml", "--out", folder / "out", "--quiet"});
  if (result.status != 0) throw std::runtime_error(result.err + result.out);
  std::vector<double> found;
  for (const auto& row : csv(folder / "out/steps.csv"))
    if (row.at("phase") == phase && row.at("node") == node) found.push_back(std::stod(row.at("t")));
  if (found.empty()) throw std::runtime_error("no " + phase + " of " + node);
  return found;
}

void expect_times(const std::vector<double>& measured, const std::vector<double>& expected,
                  double tolerance) {
  ASSERT_EQ(measured.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(measured[k], expected[k], tolerance) << "step " << k + 1;
}

// ---- Synchronous SGD. Three nodes, 15 MFLOP/s, one millisecond from any to any. The model is so
// small that no congestion window (ten packets at first) ever holds a message up.

constexpr double rate = 15e6;
constexpr int images = 64;
constexpr int steps = 12;
// Per image of an MLP 196-8-10: load 2·196; forward 2·196·8 + 8 + 2·8·10; loss and its gradient
// 13·10; backward twice the forward pass, less the first layer's input gradient, 2·196·8.
constexpr double gradient_time = images * (392.0 + 3304 + 130 + 2 * 3304 - 3136) / rate;
// With momentum, 4 a parameter.
constexpr double update_time = 4 * 1666.0 / rate;
// Of the ring: a third of the vector, loss and vote with it, crosses one millisecond and takes 2 us
// on a line; in the first half of the rounds it is added to another.
constexpr double part = 1668.0 / 3;
constexpr double hop_time = 1e-3 + 3e-6;
constexpr double sum_time = part / rate;

std::string sgd(const std::string& timeline, double speed_of_b = 1) {
  return "orrery: 1\nname: physics\ncluster:\n  cost: model\n"
         "  devices:\n    board: {flops: 15MFLOP/s, memory_bandwidth: unlimited, memory: 1GiB}\n"
         "  nodes:\n    - {name: a, device: board}\n    - {name: b, device: board, speed: " +
         std::to_string(speed_of_b) +
         "}\n    - {name: c, device: board}\n"
         "  network: {link: {delay: 0.5ms, rate: 10Gbit/s}}\n"
         "workload: {model: mlp, layers: [196, 8, 10], pool: 2, test_images: 100}\n"
         "runs:\n  - {name: sgd, strategy: sgd_allreduce, options: {batch: 64}, stop: {steps: 12},"
         " evaluate: {every: 100}}\n" +
         timeline;
}

std::size_t at(int node) { return static_cast<std::size_t>(node); }

/// When node b has taken each step, if `window` holds for it.
std::vector<double> sgd_times(const Window& window, double speed_of_b = 1) {
  constexpr int n = 3;
  const auto ends = [&](int node, double t, double work) {
    return node == 1 ? finish(t, work / speed_of_b, window) : t + work;
  };
  std::vector<double> expected;
  std::vector<double> t(n, 0.0);
  for (int step = 0; step < steps; ++step) {
    for (int node = 0; node < n; ++node) t[at(node)] = ends(node, t[at(node)], gradient_time);
    for (int round = 0; round < 2 * (n - 1); ++round) {
      const std::vector<double> sent = t;
      for (int node = 0; node < n; ++node) {
        const double there = std::max(t[at(node)], sent[at((node + n - 1) % n)] + hop_time);
        t[at(node)] = ends(node, there, round < n - 1 ? sum_time : 0);
      }
    }
    for (int node = 0; node < n; ++node) t[at(node)] = ends(node, t[at(node)], update_time);
    expected.push_back(t[1]);
  }
  return expected;
}

// Of all steps together: clocks read, threads woken.
constexpr double sgd_slack = 0.5e-3;
const double even = sgd_times({}).back();

TEST(SgdPhysics, EvenNodes) {
  const auto measured = times(sgd(""), "step", "b");
  expect_times(measured, sgd_times({}), sgd_slack);
  EXPECT_NEAR(measured.back(), steps * (gradient_time + 4 * hop_time + 2 * sum_time + update_time),
              sgd_slack);
}

TEST(SgdPhysics, AStragglerFromBeginningToEnd) {
  const Window window{0, 100, 1.0 / 3};
  const auto measured = times(sgd(slow("b", window)), "step", "b");
  expect_times(measured, sgd_times(window), sgd_slack);
  // Twice its work more a step; but the others' parts of the sum wait for it already, which spares
  // the ring a hop.
  EXPECT_NEAR((measured.back() - even) / steps, 2 * (gradient_time + update_time) - hop_time,
              0.01 * gradient_time);
}

TEST(SgdPhysics, AStragglerForAWhile) {
  const Window window{3.4 * even / steps, 8.9 * even / steps, 1.0 / 3};
  expect_times(times(sgd(slow("b", window)), "step", "b"), sgd_times(window), sgd_slack);
}

TEST(SgdPhysics, APauseWhileComputingCostsAllOfItButHops) {
  const double begin = 4.3 * even / steps;
  const Window window{begin, begin + 0.2, 0};
  const auto measured = times(sgd(pause("b", window)), "step", "b");
  expect_times(measured, sgd_times(window), sgd_slack);
  // Again the others' parts are there already, in this step and, from what is left of it, the next.
  EXPECT_LT(measured.back() - even, 0.2);
  EXPECT_GT(measured.back() - even, 0.2 - 3 * hop_time);
}

TEST(SgdPhysics, APauseCostsOnlyWhatItsNodeWouldNotHaveWaited) {
  // Node b computes twice as fast and then waits for a's part of the sum.
  const double idle = sgd_times({}, 2)[4] + 0.75 * gradient_time;
  for (const double lasts : {0.2 * gradient_time, 0.1}) {
    const Window window{idle, idle + lasts, 0};
    expect_times(times(sgd(pause("b", window), 2), "step", "b"), sgd_times(window, 2), sgd_slack);
  }
  EXPECT_NEAR(sgd_times({idle, idle + 0.2 * gradient_time, 0}, 2).back(), sgd_times({}, 2).back(),
              1e-9);
}

// ---- ND-CAO in sync. Four stages of one layer each, 10 MFLOP/s, 100 images, no estimator.

constexpr int evaluations = 15;

std::string nd_cao(const std::string& timeline) {
  return "orrery: 1\nname: physics\ncluster:\n  cost: model\n"
         "  devices:\n    board: {flops: 10MFLOP/s, memory_bandwidth: unlimited, memory: 1GiB}\n"
         "  nodes:\n    - {name: \"n[0-3]\", device: board}\n"
         "  network: {link: {delay: 0.5ms, rate: 10Gbit/s}}\n"
         "workload: {model: mlp, layers: [196, 16, 16, 16, 10], pool: 2, objective_images: 100,"
         " test_images: 100}\n"
         "runs:\n  - {name: nd_cao, strategy: nd_cao, options: {estimator: none},"
         " stop: {evaluations: 15}, evaluate: {every: 100}}\n" +
         timeline;
}

struct Stage {
  double forward;
  double move;
};
constexpr double nd_cao_rate = 10e6;
// Forward: 2·in·out and one an activation, 100 images; the last also takes the loss, 7·10 an image.
// A move: one random draw counts 50, its scaling and addition 2, for each parameter.
constexpr Stage stages[] = {{100 * (2 * 196 * 16 + 16) / nd_cao_rate, 52 * 3152 / nd_cao_rate},
                            {100 * (2 * 16 * 16 + 16) / nd_cao_rate, 52 * 272 / nd_cao_rate},
                            {100 * (2 * 16 * 16 + 16) / nd_cao_rate, 52 * 272 / nd_cao_rate},
                            {100 * (2 * 16 * 10 + 70) / nd_cao_rate, 52 * 170 / nd_cao_rate}};
constexpr double nd_cao_load = 100 * 2 * 196 / nd_cao_rate;
constexpr double hop = 1e-3;  // on lines so fast that they hardly matter

/// When each result is published if `window` holds for stage `slowed`.
std::vector<double> nd_cao_times(std::size_t slowed, const Window& window) {
  std::vector<double> expected;
  const auto ends = [&](std::size_t i, double t, double work) {
    return finish(t, work, i == slowed ? window : Window{});
  };
  for (int k = 0; k < evaluations; ++k) {
    double done = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      double own = i == 0 ? ends(0, 0, nd_cao_load) : 0;
      if (k > 0) own = ends(i, expected.back() + (i == 3 ? 0 : hop), stages[i].move);
      done = ends(i, std::max(own, i == 0 ? 0 : done + hop), stages[i].forward);
    }
    expected.push_back(done);
  }
  return expected;
}

// A quarter of a millisecond of clock readings and lines; before a window it counts for as much
// again as the node is slow in it.
constexpr double nd_cao_slack = 2e-3;

void expect_nd_cao(const std::string& timeline, std::size_t slowed, const Window& window) {
  expect_times(times(nd_cao(timeline), "evaluation", "n3"), nd_cao_times(slowed, window),
               nd_cao_slack);
}

TEST(NdCaoPhysics, EvenNodes) { expect_nd_cao("", 0, {}); }

TEST(NdCaoPhysics, AStragglerFromBeginningToEnd) {
  const Window window{0, 1000, 0.2};
  expect_nd_cao(slow("n1", window), 1, window);
}

TEST(NdCaoPhysics, AStragglerForAWhile) {
  const Window window{0.5, 1.3, 0.25};
  expect_nd_cao(slow("n0", window), 0, window);
}

TEST(NdCaoPhysics, PausesOfAComputingAndOfAWaitingNode) {
  const Window computing{0.5, 0.9, 0};
  expect_nd_cao(pause("n0", computing), 0, computing);
  // Stage 2 would have been idle for the first two thirds of its pause; they cost nothing.
  const Window waiting{0.505, 0.6, 0};
  expect_nd_cao(pause("n2", waiting), 2, waiting);
}

}  // namespace
}  // namespace orrery::e2e
