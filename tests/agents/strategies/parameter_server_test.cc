// The parameter server's three modes, against a sequential reference and closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "agents/strategies/sgd.hh"
#include "tests/support/reference_kernels.hh"
#include "tests/support/sim_cluster.hh"

namespace orrery::test {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t batch = 5;

const StrategyInfo& info() { return *find_strategy("parameter_server"); }

/// A server and `workers` of them on a toy set; a link takes 2 ms, computing nothing.
SimSpec toy(int workers, const std::string& mode, std::int64_t steps) {
  static const Dataset data = toy_dataset(4, 3, 60);
  SimSpec spec;
  spec.cluster.nodes.push_back({"server", 1});
  for (int i = 0; i < workers; ++i) spec.cluster.nodes.push_back({"w" + std::to_string(i), 1});
  spec.workload.model = make_mlp({16, 6, 3}, LayerKind::tanh);
  spec.workload.train_images = 60;
  spec.data = &data;
  spec.options = Options(info().options);
  spec.options.set("mode", mode);
  spec.options.set("batch", batch);
  spec.options.set("learning_rate", 0.2);
  spec.stop.steps = steps;
  spec.link = {Duration::milliseconds(2), 0};
  return spec;
}

/// Milliseconds of each worker's gradient.
void set_times(SimSpec& spec, const std::vector<std::int64_t>& times) {
  spec.costs = {std::make_shared<FixedCost>()};
  for (const std::int64_t time : times) {
    spec.costs.push_back(std::make_shared<FixedCost>(
        std::map<KernelOp, Duration>{{KernelOp::forward_train, Duration::milliseconds(time)}}));
  }
}

SimResult run(const SimSpec& spec) { return run_cluster(*info().make(), spec); }

std::vector<wire::Step> updates(const SimResult& result) { return result.nodes[0].rows("update"); }

/// The most gradients by which one worker was ahead of another.
double widest_lead(const SimResult& result, int workers) {
  std::vector<double> counts(static_cast<std::size_t>(workers) + 1, 0.0);
  double widest = 0;
  for (const wire::Step& row : updates(result)) {
    ++counts[static_cast<std::size_t>(row.extra().at("worker"))];
    const auto [least, most] = std::minmax_element(counts.begin() + 1, counts.end());
    widest = std::max(widest, *most - *least);
  }
  return widest;
}

/// Heavy-ball SGD on one machine, on all workers' batches together.
struct Sequential {
  std::vector<float> parameters;
  std::vector<double> losses;
};
Sequential sequential(const SimSpec& spec, int workers, std::int64_t steps) {
  const ModelSpec& model = spec.workload.model;
  const auto kernels = make_reference_kernels();
  Sequential result{initial_parameters(model, 0, model.layer_count(), spec.seed), {}};
  std::vector<double> velocity(result.parameters.size(), 0.0);
  SampleOrder order(spec.seed, spec.workload.train_images, batch, workers);
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<std::int64_t> indices;
    std::vector<std::uint8_t> labels;
    for (int worker = 0; worker < workers; ++worker) {
      const auto part = order.batch(step, worker);
      indices.insert(indices.end(), part.begin(), part.end());
    }
    for (const std::int64_t i : indices) {
      labels.push_back(spec.data->train.labels[static_cast<std::size_t>(i)]);
    }
    const auto stage = kernels->make_stage(model, 0, model.layer_count(), result.parameters);
    const Tensor input = make_batch(*spec.data, spec.data->train, indices, model.input_shape);
    Tensor slope;
    result.losses.push_back(kernels->loss_gradient(stage->forward_train(input), labels, slope));
    stage->backward(slope, false);
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    const double rate = 0.2 * (1 - 0.95 * done);
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      velocity[i] = 0.9 * velocity[i] + stage->gradients()[i];
      result.parameters[i] -= static_cast<float>(rate * velocity[i]);
    }
  }
  return result;
}

TEST(ParameterServer, SyncIsSgdOnTheJointBatch) {
  for (const int workers : {1, 3}) {
    SimSpec spec = toy(workers, "sync", 20);
    set_times(spec, {3, 9, 1});
    const SimResult result = run(spec);
    ASSERT_TRUE(result.ok()) << result.errors();
    const Sequential expected = sequential(spec, workers, 20);
    const auto rows = updates(result);
    ASSERT_EQ(rows.size(), 20u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(rows[i].loss(), expected.losses[i], 1e-5) << i;
      EXPECT_EQ(rows[i].samples(), workers * batch);
    }
    const auto parameters = result.parameters(20, spec.workload.model.parameter_count());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_NEAR(parameters[i], expected.parameters[i], 1e-5);
    }
  }
}

TEST(ParameterServer, OneWorkerIsTheSameInEveryMode) {
  const auto losses = [](const std::string& mode) {
    std::vector<double> values;
    for (const wire::Step& row : updates(run(toy(1, mode, 15)))) values.push_back(row.loss());
    return values;
  };
  EXPECT_THAT(losses("async"), testing::Pointwise(testing::DoubleNear(1e-6), losses("sync")));
  EXPECT_EQ(losses("async"), losses("ssp"));
}

TEST(ParameterServer, ARoundOfSyncTakesTheSlowestWorkerAndTwoHops) {
  SimSpec spec = toy(3, "sync", 10);
  set_times(spec, {3, 20, 5});
  const auto rows = updates(run(spec));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].t() - rows[i - 1].t(), (20 + 2 + 2) * ms);
  }
}

TEST(ParameterServer, NoWorkerIsAheadByMoreThanTheBoundAndTheGradientUnderWay) {
  for (const std::int64_t bound : {0, 2, 5}) {
    SimSpec spec = toy(3, "ssp", 60);
    set_times(spec, {2, 40, 2});
    spec.options.set("staleness", bound);
    const SimResult result = run(spec);
    ASSERT_TRUE(result.ok()) << result.errors();
    EXPECT_EQ(widest_lead(result, 3), static_cast<double>(bound + 1));
  }
  SimSpec spec = toy(3, "async", 60);
  set_times(spec, {2, 40, 2});
  EXPECT_GT(widest_lead(run(spec), 3), 10);
}

TEST(ParameterServer, AWorkerThatDiesIsDoneWithout) {
  for (const char* mode : {"async", "ssp", "sync"}) {
    SimSpec spec = toy(3, mode, 30);
    set_times(spec, {3, 6, 5});
    spec.kills = {{2, Instant{50 * ms}}};
    const SimResult result = run(spec);
    EXPECT_TRUE(result.nodes[2].killed);
    for (const int rank : {0, 1, 3}) {
      EXPECT_EQ(result.nodes[static_cast<std::size_t>(rank)].error, "") << mode;
    }
    const auto rows = updates(result);
    ASSERT_EQ(rows.size(), 30u) << mode;
    if (std::string(mode) == "sync") {
      EXPECT_EQ(rows.front().extra().at("workers"), 3);
      EXPECT_EQ(rows.back().extra().at("workers"), 2);
      EXPECT_EQ(rows.back().samples(), 2 * batch);
    }
  }
}

TEST(ParameterServer, WithoutTheServerEveryWorkerEndsWithTheReason) {
  for (const char* mode : {"async", "ssp", "sync"}) {
    SimSpec spec = toy(2, mode, 1000);
    set_times(spec, {3, 6});
    spec.kills = {{0, Instant{50 * ms}}};
    const SimResult result = run(spec);
    for (const std::size_t rank : {1u, 2u}) EXPECT_EQ(result.nodes[rank].lost_peer, 0) << mode;
  }
}

TEST(ParameterServer, EveryModeEndsAtATimeToo) {
  for (const char* mode : {"async", "ssp", "sync"}) {
    SimSpec spec = toy(3, mode, 1);
    set_times(spec, {3, 6, 5});
    spec.stop = {.time = Duration::milliseconds(100)};
    const SimResult result = run(spec);
    ASSERT_TRUE(result.ok()) << result.errors();
    EXPECT_GE(updates(result).back().t(), 100 * ms);
  }
}

}  // namespace
}  // namespace orrery::test
