// One test a rule of the protocol (docs/nd-cao.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "agents/strategies/nd_cao/block.hh"
#include "agents/strategies/nd_cao/coordinates.hh"
#include "base/philox.hh"
#include "tests/agents/strategies/nd_cao/run_nd_cao.hh"
#include "tests/support/reference_kernels.hh"

namespace orrery::test {
namespace {

std::shared_ptr<const CostModel> costs(std::map<KernelOp, std::int64_t> milliseconds) {
  std::map<KernelOp, Duration> times;
  for (const auto& [op, value] : milliseconds) times[op] = Duration::milliseconds(value);
  return std::make_shared<FixedCost>(times);
}

/// Four nodes of unequal speed, async.
ToyRun uneven_async(std::int64_t evaluations = 60) {
  ToyRun toy(4, evaluations);
  toy.set("mode", "async");
  for (const std::int64_t forward : {3, 9, 4, 2}) {
    toy.spec.costs.push_back(costs({{KernelOp::forward, forward}, {KernelOp::fill, 2}}));
  }
  return toy;
}

double extra(const wire::Step& row, const std::string& key) {
  const auto found = row.extra().find(key);
  return found == row.extra().end() ? std::nan("") : found->second;
}

class BothModes : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(NdCao, BothModes, testing::Values("sync", "async"));

TEST_P(BothModes, ResultsComeInOrderAndTheBudgetIsMetExactly) {
  const SimResult result = uneven_async(57).set("mode", GetParam()).run_ok();
  const auto rows = result.nodes[3].rows("evaluation");
  ASSERT_EQ(rows.size(), 57u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].step(), static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(rows[i].samples(), 30);
  }
  for (const SimNode& node : result.nodes) {
    ASSERT_EQ(node.rows("end").size(), 1u);
    EXPECT_EQ(node.rows("end")[0].step(), 57);
  }
}

TEST_P(BothModes, TheBestNeverRisesAndIsTheLeastSoFar) {
  const SimResult result = uneven_async().set("mode", GetParam()).run_ok();
  double least = std::numeric_limits<double>::infinity();
  for (const wire::Step& row : result.nodes[3].rows("evaluation")) {
    EXPECT_EQ(extra(row, "is_best") == 1, row.loss() < least);
    least = std::min(least, row.loss());
    EXPECT_EQ(extra(row, "best"), least);
  }
}

TEST_P(BothModes, TheDistributedLossOfTheBestIsTheUndistributedOne) {
  ToyRun toy = uneven_async();
  toy.set("mode", GetParam()).spec.evaluate_every = 1;
  const SimResult result = toy.run_ok();
  for (const wire::Step& row : result.nodes[3].rows("evaluation")) {
    const auto best = result.parameters(row.step(), toy.parameter_count());
    EXPECT_NEAR(whole_loss(toy, best), extra(row, "best"), 1e-6) << row.step();
  }
}

TEST_P(BothModes, SnapshotsAreOfOneEvaluationAtEveryNode) {
  ToyRun toy = uneven_async(57);
  const SimResult result = toy.set("mode", GetParam()).run_ok();
  std::set<std::int64_t> steps;
  for (const wire::Snapshot& snapshot : result.nodes[0].snapshots()) steps.insert(snapshot.step());
  EXPECT_EQ(steps, (std::set<std::int64_t>{0, 10, 20, 30, 40, 50, 57}));
  for (const std::int64_t step : steps) {
    EXPECT_NO_THROW(result.parameters(step, toy.parameter_count()));
  }
}

TEST_P(BothModes, OnlyActivationsScalarsAndControlCross) {
  const SimResult result = uneven_async().set("mode", GetParam()).run_ok();
  for (std::size_t i = 0; i < 4; ++i) {
    const SimNode& node = result.nodes[i];
    EXPECT_EQ(node.sent_bytes("gradient") + node.sent_bytes("parameter") + node.sent_bytes("move"),
              0);
    EXPECT_EQ(node.sent_bytes("activation") > 0, i < 3);
  }
  EXPECT_EQ(result.nodes[3].sent_messages("scalar"), 3 * 60);
  EXPECT_EQ(result.nodes[3].sent_bytes("scalar"), 3 * 60 * 16);
}

TEST_P(BothModes, RunsOnOneNode) {
  ToyRun toy(1, 40);
  toy.set("mode", GetParam()).set("partition", "rows").set("blocks_per_node", 3);
  const SimResult result = toy.run_ok();
  const auto values = losses(result);
  ASSERT_EQ(values.size(), 40u);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), values[0]);
}

TEST_P(BothModes, MoreFrequentSnapshotsChangeNoTime) {
  ToyRun rare = uneven_async();
  rare.set("mode", GetParam());
  ToyRun often = rare;
  often.spec.evaluate_every = 1;
  const SimResult a = rare.run_ok();
  const SimResult b = often.run_ok();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(a.nodes[i].end, b.nodes[i].end);
  EXPECT_EQ(losses(a), losses(b));
}

TEST_P(BothModes, ALossOrATimeEndsARunAndWhatIsUnderWayCounts) {
  for (const bool by_time : {false, true}) {
    ToyRun toy = uneven_async();
    toy.set("mode", GetParam());
    toy.spec.stop = {};
    if (by_time) {
      toy.spec.stop.time = Duration::milliseconds(500);
    } else {
      toy.spec.stop.loss = 1.0;
    }
    const SimResult result = toy.run_ok();
    const auto rows = result.nodes[3].rows("evaluation");
    const auto ended = std::find_if(rows.begin(), rows.end(), [&](const wire::Step& row) {
      return by_time ? row.t() >= 500 * ms : row.loss() <= 1.0;
    });
    ASSERT_NE(ended, rows.end());
    // At most W − 1 were under way when the last result was published.
    EXPECT_LE(rows.end() - ended, 2);
    for (const SimNode& node : result.nodes) {
      EXPECT_EQ(node.rows("end")[0].step(), static_cast<std::int64_t>(rows.size()));
    }
  }
}

TEST_P(BothModes, ALostPeerEndsTheRunAndSaysWhoWaitedForWhat) {
  for (const int victim : {0, 1, 2, 3}) {
    ToyRun toy = uneven_async(1000);
    toy.set("mode", GetParam());
    toy.spec.kills = {{victim, Instant{300 * ms}}};
    const SimResult result = toy.run();
    EXPECT_TRUE(result.nodes[static_cast<std::size_t>(victim)].killed);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const SimNode& node = result.nodes[static_cast<std::size_t>(rank)];
      EXPECT_THAT(node.error,
                  testing::MatchesRegex("board" + std::to_string(rank) +
                                        " at evaluation [0-9]+: lost board[0-9] while it waited "
                                        "for .*"));
    }
  }
}

TEST_P(BothModes, AChangedSetIsBegunWithTheBestAgain) {
  ToyRun toy = uneven_async(60);
  toy.set("mode", GetParam()).set("set_every", 12);
  toy.spec.evaluate_every = 1;
  const SimResult result = toy.run_ok();
  const auto rows = result.nodes[3].rows("evaluation");
  ASSERT_EQ(rows.size(), 60u);
  int changes = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (extra(rows[i], "set") <= extra(rows[i - 1], "set")) continue;
    ++changes;
    // The first on a set is its best, and is the old set's best composite.
    EXPECT_EQ(extra(rows[i], "is_best"), 1);
    EXPECT_EQ(result.parameters(rows[i - 1].step(), toy.parameter_count()),
              result.parameters(rows[i].step(), toy.parameter_count()));
    ToyRun other = toy;
    Dataset shifted = *toy.spec.data;
    const auto begin = static_cast<std::ptrdiff_t>(extra(rows[i], "set")) * 30 % 60;
    std::rotate(shifted.train.labels.begin(), shifted.train.labels.begin() + begin,
                shifted.train.labels.end());
    std::rotate(shifted.train.pixels.begin(), shifted.train.pixels.begin() + begin * 16,
                shifted.train.pixels.end());
    other.spec.data = &shifted;
    EXPECT_NEAR(whole_loss(other, result.parameters(rows[i].step(), toy.parameter_count())),
                rows[i].loss(), 1e-6);
  }
  EXPECT_GE(changes, 3);
}

TEST_P(BothModes, SameSeedSameRunAndAnotherSeedAnother) {
  ToyRun toy = uneven_async();
  toy.set("mode", GetParam());
  const SimResult a = toy.run_ok();
  const SimResult b = toy.run_ok();
  EXPECT_EQ(losses(a), losses(b));
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(a.nodes[i].rows("move").size(), b.nodes[i].rows("move").size());
    EXPECT_EQ(a.nodes[i].end, b.nodes[i].end);
  }
  toy.spec.seed = 2;
  EXPECT_NE(losses(a), losses(toy.run_ok()));
}

/// Reference kernels that count evaluations begun at node 0 and losses computed at the last.
struct Watch {
  std::int64_t begun = 0;
  std::int64_t answered = 0;
  std::int64_t most = 0;
};
class WatchedStage : public Stage {
 public:
  WatchedStage(std::unique_ptr<Stage> stage, Watch* watch)
      : stage_(std::move(stage)), watch_(watch) {}
  std::span<float> parameters() override { return stage_->parameters(); }
  std::span<float> gradients() override { return stage_->gradients(); }
  Tensor forward(const Tensor& input) override {
    if (watch_) watch_->most = std::max(watch_->most, ++watch_->begun - watch_->answered);
    return stage_->forward(input);
  }
  Tensor forward_train(const Tensor& input) override { return stage_->forward_train(input); }
  Tensor backward(const Tensor& gradient, bool want) override {
    return stage_->backward(gradient, want);
  }

 private:
  std::unique_ptr<Stage> stage_;
  Watch* watch_;
};
class WatchedKernels : public Kernels {
 public:
  explicit WatchedKernels(Watch& watch) : watch_(watch) {}
  std::unique_ptr<Stage> make_stage(const ModelSpec& model, int first, int last,
                                    std::span<const float> start) override {
    return std::make_unique<WatchedStage>(kernels_->make_stage(model, first, last, start),
                                          first == 0 ? &watch_ : nullptr);
  }
  double loss(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    ++watch_.answered;
    return kernels_->loss(logits, labels);
  }
  double loss_gradient(const Tensor& logits, std::span<const std::uint8_t> labels,
                       Tensor& grad) override {
    return kernels_->loss_gradient(logits, labels, grad);
  }
  std::int64_t correct(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    return kernels_->correct(logits, labels);
  }

 private:
  std::unique_ptr<Kernels> kernels_ = make_reference_kernels();
  Watch& watch_;
};

TEST(NdCaoProtocol, AtMostWEvaluationsAreUnderWay) {
  for (const int in_flight : {1, 2, 3}) {
    Watch watch;
    ToyRun toy = uneven_async();
    toy.set("in_flight", in_flight).set("caching", OptionValue(false));
    toy.spec.kernels = [&] { return std::make_unique<WatchedKernels>(watch); };
    toy.run_ok();
    EXPECT_EQ(watch.most, in_flight);
  }
  Watch watch;
  ToyRun toy = uneven_async();
  toy.set("mode", "sync").set("in_flight", 3);
  toy.spec.kernels = [&] { return std::make_unique<WatchedKernels>(watch); };
  toy.run_ok();
  EXPECT_EQ(watch.most, 1);
}

TEST(NdCaoProtocol, InSyncEveryBlockMovesOnceAfterEachResult) {
  ToyRun toy(4, 30);
  const SimResult result = toy.run_ok();
  for (const SimNode& node : result.nodes) {
    const auto moves = node.rows("move");
    ASSERT_EQ(moves.size(), 29u);
    for (std::size_t i = 0; i < moves.size(); ++i) {
      EXPECT_EQ(extra(moves[i], "newest"), static_cast<double>(i + 1));
      EXPECT_EQ(extra(moves[i], "evaluation"), static_cast<double>(i + 2));
      EXPECT_EQ(extra(moves[i], "staleness"), 0);
    }
  }
}

TEST(NdCaoProtocol, ResultsDependOnNoPlacementInSync) {
  const auto expected = losses(ToyRun(4).run_ok());
  for (const int nodes : {1, 2, 3}) EXPECT_EQ(losses(ToyRun(nodes).run_ok()), expected) << nodes;
  ToyRun slow(4);
  slow.spec.link = {Duration::milliseconds(50), 1e5};
  slow.spec.costs.assign(4, costs({{KernelOp::forward, 7}, {KernelOp::fill, 3}}));
  EXPECT_EQ(losses(slow.run_ok()), expected);
}

TEST(NdCaoProtocol, OneBlockIsTheUnpartitionedMethodBitForBit) {
  const auto expected = losses(ToyRun(4).set("partition", "layer").run_ok());
  for (const char* partition : {"rows", "chunks", "random"}) {
    const SimResult result =
        ToyRun(4).set("partition", partition).set("blocks_per_node", 1).run_ok();
    EXPECT_EQ(losses(result), expected) << partition;
  }
  EXPECT_NE(losses(ToyRun(4).set("partition", "rows").set("blocks_per_node", 2).run_ok()),
            expected);
}

TEST(NdCaoProtocol, AsyncWithABarrierIsSync) {
  ToyRun toy(4, 50);
  toy.spec.costs.assign(4, costs({{KernelOp::forward, 4}, {KernelOp::fill, 3}}));
  const auto expected = losses(toy.run_ok());
  toy.set("mode", "async").set("in_flight", 1).set("staleness", 1);
  EXPECT_EQ(losses(toy.run_ok()), expected);
}

TEST(NdCaoProtocol, CachingSavesActivationsAndChangesNoLoss) {
  // Compute is free, so that what is saved does not change what comes first.
  ToyRun with(4, 80);
  with.set("mode", "async").set("move_after", "loss");
  ToyRun without = with;
  without.set("caching", OptionValue(false));
  const SimResult a = with.run_ok();
  const SimResult b = without.run_ok();
  EXPECT_EQ(losses(a), losses(b));
  EXPECT_LT(a.nodes[0].sent_bytes("activation"), b.nodes[0].sent_bytes("activation"));
  const auto computed = [](const SimResult& result) {
    return extra(result.nodes[0].rows("end")[0], "images_computed");
  };
  EXPECT_EQ(computed(b), 80 * 30);
  EXPECT_LT(computed(a), 80 * 30);
}

TEST(NdCaoProtocol, InAsyncEveryBlockMovesForEachEvaluationWhereItsMovesAreQuick) {
  for (const int in_flight : {2, 3}) {
    ToyRun toy(4, 60);
    toy.set("mode", "async").set("in_flight", in_flight).set("partition", "rows");
    toy.set("blocks_per_node", 2);
    toy.spec.costs.assign(4, costs({{KernelOp::forward, 5}}));
    const SimResult result = toy.run_ok();
    for (const SimNode& node : result.nodes) {
      std::map<double, double> moves;
      for (const wire::Step& row : node.rows("move")) {
        ++moves[extra(row, "block")];
        EXPECT_LE(extra(row, "staleness"), in_flight);
        // Fits know all results but those of evaluations under way.
        EXPECT_GE(extra(row, "newest"), extra(row, "evaluation") - 1 - in_flight);
      }
      EXPECT_EQ(moves.size(), 2u);
      for (const auto& [block, count] : moves) EXPECT_EQ(count, 59) << block;
    }
  }
}

TEST(NdCaoProtocol, AStragglerHoldsTheOthersAtTheStalenessBound) {
  // Node 2's ten blocks take turns, a slow move each; without a bound evaluations would pass by the
  // tenth while the other nine move.
  const auto longest_rest = [](int bound) {
    ToyRun toy(4, 120);
    toy.spec.workload.model = make_mlp({16, 6, 5, 10, 3}, LayerKind::tanh);
    toy.set("mode", "async").set("staleness", bound);
    toy.set("partition", "rows").set("blocks_per_node", 10);
    toy.spec.costs.assign(4, costs({{KernelOp::forward, 1}}));
    toy.spec.costs[2] = costs({{KernelOp::forward, 1}, {KernelOp::fill, 100}});
    const SimResult result = toy.run_ok();
    double most = 0;
    std::map<double, double> before;
    for (const wire::Step& row : result.nodes[2].rows("move")) {
      double& last = before[extra(row, "block")];
      most = std::max(most, extra(row, "newest") - last);
      last = extra(row, "newest");
    }
    return most;
  };
  // s results, and what was under way when the s-th came.
  EXPECT_LE(longest_rest(3), 3 + 2);
  EXPECT_LE(longest_rest(5), 5 + 2);
  EXPECT_GT(longest_rest(30), 5 + 2);
}

TEST(NdCaoProtocol, AForwardThatHasArrivedGoesBeforeAMove) {
  // Node 1 has many blocks with slow moves: evaluations pass between them, never after all of them.
  ToyRun toy(4, 60);
  toy.set("mode", "async").set("partition", "rows").set("blocks_per_node", 4).set("staleness", 20);
  toy.spec.costs.assign(4, costs({{KernelOp::forward, 1}, {KernelOp::fill, 30}}));
  toy.spec.costs[0] = costs({{KernelOp::forward, 1}});  // else it would set the pace itself
  const SimResult result = toy.run_ok();
  std::map<double, std::set<double>> versions;
  for (const wire::Step& row : result.nodes[1].rows("move")) {
    versions[extra(row, "block")].insert(extra(row, "evaluation"));
  }
  EXPECT_GT(versions.size(), 2u);
  EXPECT_NE(versions.begin()->second, std::next(versions.begin())->second);
}

TEST(NdCaoProtocol, ANonFiniteLossIsNeverTheBest) {
  /// Every third loss is not a number.
  class Failing : public WatchedKernels {
   public:
    using WatchedKernels::WatchedKernels;
    double loss(const Tensor& logits, std::span<const std::uint8_t> labels) override {
      const double value = WatchedKernels::loss(logits, labels);
      return ++calls_ % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : value;
    }
    int calls_ = 0;
  };
  Watch watch;
  ToyRun toy(4, 60);
  toy.spec.kernels = [&] { return std::make_unique<Failing>(watch); };
  const SimResult result = toy.run_ok();
  int bad = 0;
  for (const wire::Step& row : result.nodes[3].rows("evaluation")) {
    if (std::isfinite(row.loss())) continue;
    ++bad;
    EXPECT_EQ(extra(row, "is_best"), 0);
    EXPECT_TRUE(std::isfinite(extra(row, "best")));
  }
  EXPECT_EQ(bad, 20);
  for (const float value : result.parameters(60, toy.parameter_count())) {
    ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(NdCaoProtocol, TheStepIsAFunctionOfEvaluationsAlone) {
  const SimResult result = uneven_async(60).run_ok();
  for (const SimNode& node : result.nodes) {
    for (const wire::Step& row : node.rows("move")) {
      const double size = extra(row, "step_size");
      const double published = (1 - size / 0.15) / 0.95 * 60;
      EXPECT_NEAR(published, std::round(published), 1e-6);
      EXPECT_GE(published, extra(row, "newest") - 1e-6);
      EXPECT_LE(published, static_cast<double>(row.step()) + 1e-6);
    }
  }
}

TEST(NdCaoProtocol, ALogReplaysToTheSameParameters) {
  ToyRun toy = uneven_async(60);
  const SimResult result = toy.run_ok();
  const ModelSpec& model = toy.spec.workload.model;
  const auto evaluations = result.nodes[3].rows("evaluation");
  std::vector<float> replayed(static_cast<std::size_t>(toy.parameter_count()));
  double number = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const NodePlacement& own = result.placement.nodes[rank];
    const auto start = initial_parameters(model, own.first_layer, own.last_layer, toy.spec.seed);
    const std::int64_t offset = model.parameter_count(0, own.first_layer);
    for (const BlockSpec& spec : own.blocks) {
      const auto coordinates = nd_cao::plain_coordinates(spec, model, offset, start, {true, 1.0});
      nd_cao::Block block(spec.name, toy.spec.seed, {}, coordinates->start(), coordinates->scale());
      std::size_t answered = 0;
      const auto feed = [&](std::size_t until) {
        for (; answered < until; ++answered) {
          block.result(static_cast<std::int64_t>(answered), evaluations[answered].loss(),
                       extra(evaluations[answered], "is_best") == 1);
        }
      };
      std::map<double, wire::Step> moves;
      for (const wire::Step& row : result.nodes[rank].rows("move")) {
        if (extra(row, "block") == number) moves[extra(row, "evaluation")] = row;
      }
      for (std::size_t k = 0; k < evaluations.size(); ++k) {
        if (const auto made = moves.find(static_cast<double>(k + 1)); made != moves.end()) {
          feed(static_cast<std::size_t>(extra(made->second, "newest")));
          const double step = extra(made->second, "step_size");
          block.fit();
          block.score(step);
          block.fill(step);
        }
        block.in_force(static_cast<std::int64_t>(k));
      }
      feed(evaluations.size());
      std::vector<float> part(start.begin(), start.end());
      coordinates->write(
          block.best(), std::span(replayed).subspan(static_cast<std::size_t>(offset), part.size()));
      ++number;
    }
  }
  EXPECT_EQ(replayed, result.parameters(60, toy.parameter_count()));
}

TEST(NdCaoProtocol, ANoteMayOvertakeTheResultThatItsMoveUsed) {
  // The last node's results take long to node 0 and are at node 1, moved upon and told of before.
  ToyRun toy(3, 30);
  toy.set("mode", "async").set("in_flight", 1).set("staleness", 1);
  toy.spec.links[{2, 0}] = {Duration::milliseconds(40), 0};
  const SimResult result = toy.run_ok();
  EXPECT_EQ(losses(result), losses(ToyRun(3, 30).run_ok()));
}

TEST(NdCaoProtocol, NeverWaitsForEver) {
  // Many shapes of cluster, each with its own delays and costs; a deadlock would throw.
  Philox random(1, "shapes");
  for (int i = 0; i < 60; ++i) {
    const int nodes = 1 + static_cast<int>(random.below(4));
    ToyRun toy(nodes, 16);
    const int in_flight = 1 + static_cast<int>(random.below(4));
    toy.set("mode", random.below(4) ? "async" : "sync").set("in_flight", in_flight);
    toy.set("staleness", in_flight == 1 && random.below(2)
                             ? 1
                             : in_flight + 1 + static_cast<int>(random.below(3)));
    toy.set("partition", "rows").set("blocks_per_node", 1 + static_cast<int>(random.below(3)));
    if (random.below(3) == 0) toy.set("move_after", "loss");
    if (random.below(3) == 0) toy.set("set_every", 3 + static_cast<int>(random.below(6)));
    if (random.below(3) == 0) toy.spec.stop = {.time = Duration::milliseconds(120)};
    if (random.below(4) == 0) toy.spec.stop.loss = 1.05;
    for (int a = 0; a < nodes; ++a) {
      toy.spec.costs.push_back(costs({{KernelOp::forward, random.below(5) + 1},
                                      {KernelOp::fill, random.below(30)},
                                      {KernelOp::message, random.below(2)}}));
      for (int b = 0; b < nodes; ++b) {
        toy.spec.links[{a, b}] = {Duration::microseconds(random.below(20000)), 1e6};
      }
    }
    std::string shape = "shape " + std::to_string(i);
    for (const char* name : {"in_flight", "staleness", "set_every", "blocks_per_node"}) {
      shape += std::string(", ") + name + " " + std::to_string(toy.spec.options.integer(name));
    }
    SCOPED_TRACE(shape + ", mode " + toy.spec.options.text("mode"));
    SimResult result;
    ASSERT_NO_THROW(result = toy.run());
    ASSERT_TRUE(result.ok()) << i << " " << result.errors();
    for (const SimNode& node : result.nodes) {
      ASSERT_EQ(node.rows("end").at(0).step(), result.nodes[0].rows("end").at(0).step());
    }
  }
}

}  // namespace
}  // namespace orrery::test
