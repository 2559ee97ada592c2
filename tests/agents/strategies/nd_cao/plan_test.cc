#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "agents/strategies/nd_cao/charged.hh"
#include "agents/strategies/nd_cao/coordinates.hh"
#include "agents/strategies/nd_cao/partition.hh"
#include "tests/agents/strategies/nd_cao/run_nd_cao.hh"

namespace orrery::test {
namespace {

using nd_cao::cut_blocks;
using nd_cao::cut_layers;
using nd_cao::Partition;

Placement plan(const ToyRun& toy) {
  return nd_cao_info().make()->plan(toy.spec.cluster, toy.spec.workload, toy.spec.options,
                                    toy.spec.stop, toy.spec.seed);
}

std::string refusal(const ToyRun& toy) {
  try {
    plan(toy);
  } catch (const PlacementError& error) {
    return error.what();
  }
  return "";
}

TEST(NdCaoPlan, EachNodeHasAParametricLayerAndItsActivation) {
  const Placement placement = plan(ToyRun(4));
  ASSERT_EQ(placement.nodes.size(), 4u);
  const std::vector<std::pair<int, int>> expected{{0, 2}, {2, 4}, {4, 6}, {6, 7}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::pair(placement.nodes[i].first_layer, placement.nodes[i].last_layer),
              expected[i]);
    EXPECT_EQ(placement.nodes[i].blocks.size(), 1u);
  }
  EXPECT_EQ(placement.nodes[0].role, "stage 1 of 4");
  EXPECT_EQ(placement.nodes[0].sends_to, std::vector<int>{1});
  EXPECT_EQ(placement.nodes[3].sends_to, (std::vector<int>{0, 1, 2}));
}

TEST(NdCaoPlan, BalancesFlopsBySpeed) {
  const ModelSpec model = make_mlp({8, 8, 8, 8, 8}, LayerKind::tanh);
  ClusterView cluster{{{"fast", 3}, {"slow", 1}}};
  const auto stages = cut_layers(cluster, model, true);
  EXPECT_EQ(stages[0], std::pair(0, 6));
  EXPECT_EQ(stages[1], std::pair(6, 7));
  EXPECT_EQ(cut_layers(cluster, model, false)[0], std::pair(0, 4));
  cluster.stage_layers = {1, 3};
  EXPECT_EQ(cut_layers(cluster, model, true)[0], std::pair(0, 2));
  cluster.stage_layers = {1, 2};
  EXPECT_THROW(cut_layers(cluster, model, true), PlacementError);
}

TEST(NdCaoPlan, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal(ToyRun(5)), testing::HasSubstr("at most 4 nodes"));
  EXPECT_THAT(refusal(ToyRun(4).set("mode", "async").set("staleness", 2)),
              testing::HasSubstr("staleness of 3 or more"));
  EXPECT_THAT(refusal(ToyRun(4).set("input_rank", 3).set("partition", "random")),
              testing::HasSubstr("layer or rows"));
  EXPECT_THAT(refusal(ToyRun(4).set("input_rank", 17)), testing::HasSubstr("at most 16"));
  ToyRun endless;
  endless.spec.stop = {};
  EXPECT_THAT(refusal(endless), testing::HasSubstr("no end"));
  ToyRun empty;
  empty.spec.workload.objective_images = 0;
  EXPECT_THAT(refusal(empty), testing::HasSubstr("objective"));
}

class EveryPartition : public testing::TestWithParam<Partition> {};

TEST_P(EveryPartition, CoversANodesParametersOnceAndNoOther) {
  const ModelSpec model = make_mlp({16, 6, 5, 4, 3}, LayerKind::tanh);
  for (const int parts : {1, 3, 7}) {
    for (const auto& [first, last] : std::vector<std::pair<int, int>>{{0, 2}, {2, 6}, {0, 7}}) {
      const auto blocks = cut_blocks(model, first, last, GetParam(), parts, 1);
      const std::int64_t begin = model.parameter_count(0, first);
      EXPECT_NO_THROW(
          nd_cao::check_blocks(blocks, begin, begin + model.parameter_count(first, last)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPartition,
                         testing::Values(Partition::layer, Partition::tensor, Partition::rows,
                                         Partition::chunks, Partition::random));

TEST(NdCaoPlan, RowsKeepANeuronTogetherWithItsBias) {
  const ModelSpec model = make_mlp({3, 4, 2}, LayerKind::tanh);
  const auto blocks = cut_blocks(model, 0, 2, Partition::rows, 2, 1);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].ranges,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 6}, {12, 14}}));
}

TEST(NdCaoPlan, ABlockThatTouchesAnothersTensorFails) {
  for (const bool across_nodes : {false, true}) {
    ToyRun toy(2);
    toy.spec.cluster.stage_layers = {2, 2};
    toy.spec.tamper = [&](Placement& placement) {
      auto& blocks = placement.nodes[0].blocks;
      (across_nodes ? blocks.back() : blocks.front()).ranges.back().second += 3;
    };
    const SimResult result = toy.run();
    EXPECT_THAT(result.nodes[0].error,
                testing::HasSubstr(across_nodes ? "another node" : "another block"));
  }
}

TEST(NdCaoPlan, NamesEveryKernelThatIsCharged) {
  /// Counts what the plan did not name.
  struct Strict : CostModel {
    std::vector<KernelSpec> named;
    Duration base(const KernelSpec& kernel) const override {
      const bool known = std::count(named.begin(), named.end(), kernel) > 0;
      // The end of an unbudgeted run is told by a frame of 16 bytes, as long as a result.
      EXPECT_TRUE(known) << kernel.key();
      return Duration::microseconds(10);
    }
  };
  for (const char* mode : {"sync", "async"}) {
    ToyRun toy(4, 30);
    toy.set("mode", mode).set("input_rank", 5).set("partition", "rows").set("blocks_per_node", 2);
    const Placement placement = plan(toy);
    for (const NodePlacement& node : placement.nodes) {
      auto cost = std::make_shared<Strict>();
      cost->named = node.kernels;
      toy.spec.costs.push_back(cost);
    }
    toy.run_ok();
  }
}

TEST(NdCaoPlan, AFitIsChargedAtItsWindowsSizeAndTheTopCandidatesTwice) {
  struct Recorder : CostModel {
    mutable std::vector<KernelSpec> charged;
    Duration base(const KernelSpec& kernel) const override {
      charged.push_back(kernel);
      return Duration::microseconds(10);
    }
  };
  ToyRun toy(4, 14);
  toy.set("window", 8).set("monomials", 7).set("candidates", 50).set("top", 6);
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int i = 0; i < 4; ++i) {
    recorders.push_back(std::make_shared<Recorder>());
    toy.spec.costs.push_back(recorders.back());
  }
  toy.run_ok();
  for (const auto& recorder : recorders) {
    std::vector<std::int64_t> fits;
    std::vector<std::int64_t> candidates;
    for (const KernelSpec& kernel : recorder->charged) {
      if (kernel.op == KernelOp::estimator_fit) fits.push_back(kernel.count);
      if (kernel.op == KernelOp::candidates) candidates.push_back(kernel.count);
    }
    // One move after each result but the last; the first four have no estimate.
    EXPECT_EQ(fits, (std::vector<std::int64_t>{5, 6, 7, 8, 8, 8, 8, 8, 8}));
    EXPECT_EQ(candidates, std::vector<std::int64_t>(9, 56));
  }
}

TEST(NdCaoPlan, LongWindowsAreChargedInSteps) {
  nd_cao::BlockSettings settings;
  settings.window = 1000;
  const auto kernels = nd_cao::fit_kernels(settings);
  EXPECT_LE(kernels.size(), 32u);
  EXPECT_EQ(kernels.back().count, 1000);
  for (const std::int64_t entries : {5, 32, 33, 500, 999, 1000}) {
    const KernelSpec kernel = nd_cao::fit_kernel(settings, entries);
    EXPECT_GE(kernel.count, entries);
    EXPECT_LE(kernel.count, entries + 1000 / 32 + 1);
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), kernel), 1);
  }
}

TEST(Coordinates, OfInputsMoveWithinThePrincipalComponents) {
  const ToyRun toy;
  const ModelSpec& model = toy.spec.workload.model;
  const Tensor input = make_batch(*toy.spec.data, toy.spec.data->train, 0, 30, model.input_shape);
  const auto components = nd_cao::principal_components(input.values(), 16, 4);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) {
      double dot = 0;
      for (std::size_t f = 0; f < 16; ++f) {
        dot += components.directions[a * 16 + f] * components.directions[b * 16 + f];
      }
      EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-9);
    }
    if (a > 0) {
      EXPECT_GE(components.root_mean_square[a - 1], components.root_mean_square[a]);
    }
  }
  // What they say of the inputs' spread is what the inputs have.
  double along = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    double dot = 0;
    for (std::size_t f = 0; f < 16; ++f) {
      dot += components.directions[f] * static_cast<double>(input.values()[i * 16 + f]);
    }
    along += dot * dot / 30;
  }
  EXPECT_NEAR(std::sqrt(along), components.root_mean_square[0], 1e-6);

  const auto blocks = cut_blocks(model, 0, 2, Partition::layer, 1, 1);
  const auto start = initial_parameters(model, 0, 2, 1);
  const auto coordinates =
      nd_cao::input_coordinates(blocks[0], model, 0, start, components, 0.5, {true, 1});
  std::vector<float> moved = coordinates->start();
  EXPECT_EQ(static_cast<std::int64_t>(moved.size()), nd_cao::coordinate_count(blocks[0], model, 4));
  std::vector<float> written(start.size(), -1.0f);
  coordinates->write(moved, written);
  for (std::size_t i = 0; i < start.size(); ++i) EXPECT_NEAR(written[i], start[i], 1e-6);

  moved[1] += 0.3f;  // the first row's second component
  coordinates->write(moved, written);
  for (std::size_t f = 0; f < 16; ++f) {
    EXPECT_NEAR(written[f], start[f] + 0.3 * components.directions[16 + f], 1e-5);
  }
  for (std::size_t i = 16; i < start.size(); ++i) EXPECT_NEAR(written[i], start[i], 1e-6);
}

}  // namespace
}  // namespace orrery::test
