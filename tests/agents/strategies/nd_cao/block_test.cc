#include "agents/strategies/nd_cao/block.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>

namespace orrery::nd_cao {
namespace {

Block make_block(const BlockSettings& settings = {}, std::size_t size = 20,
                 const std::string& name = "block") {
  return Block(name, 1, settings, std::vector<float>(size, 0.5f), std::vector<float>(size, 1.0f));
}

void move(Block& block, double step = 0.1) {
  block.fit();
  block.score(step);
  block.fill(step);
}

/// Evaluates and moves `count` times against `loss`.
template <typename Loss>
double descend(Block& block, int count, const Loss& loss, double step = 0.1) {
  double best = std::numeric_limits<double>::infinity();
  for (int k = 0; k < count; ++k) {
    block.in_force(k);
    const double value = loss(block.current());
    block.result(k, value, value < best);
    best = std::min(best, value);
    move(block, step);
  }
  return best;
}

double bowl(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return sum;
}

TEST(Block, TheBestIsTheVersionThatWasInForce) {
  Block block = make_block();
  const std::vector<float> start = block.current();
  block.in_force(0);
  block.result(0, 1.0, true);
  move(block);
  const std::vector<float> second = block.current();
  block.in_force(1);
  block.in_force(2);  // the same version again, before either has an answer
  block.result(1, 0.5, true);
  EXPECT_EQ(block.best(), second);
  move(block);
  block.in_force(3);
  // Evaluation 2 used the second version, though a third is in force by now.
  block.result(2, 0.4, true);
  EXPECT_EQ(block.best(), second);
  block.result(3, 0.9, false);
  EXPECT_EQ(block.best(), second);
  EXPECT_NE(second, start);
}

TEST(Block, ResultsAreTakenInOrderOnly) {
  Block block = make_block();
  block.in_force(0);
  block.in_force(1);
  EXPECT_THROW(block.result(1, 1.0, false), std::logic_error);
}

TEST(Block, TheWindowHasOneEntryAVersionWithItsLatestLossAndAtMostT) {
  BlockSettings settings;
  settings.window = 5;
  Block block = make_block(settings);
  block.in_force(0);
  block.in_force(1);
  block.result(0, 1.0, true);
  block.result(1, 1.1, false);
  EXPECT_EQ(block.window_size(), 1u);
  for (int k = 2; k < 20; ++k) {
    move(block);
    block.in_force(k);
    block.result(k, 1.0, false);
  }
  EXPECT_EQ(block.window_size(), 5u);
}

TEST(Block, MovesWhenItsVersionWasTriedAndFewerThanWTrialsWait) {
  BlockSettings settings;
  settings.ahead = 2;
  Block block = make_block(settings);
  EXPECT_FALSE(block.may_move());  // not tried
  block.in_force(0);
  EXPECT_TRUE(block.may_move());  // one of two under way
  move(block);
  EXPECT_FALSE(block.may_move());
  block.in_force(1);
  EXPECT_FALSE(block.may_move());  // two
  block.result(0, 1.0, true);
  EXPECT_TRUE(block.may_move());
}

TEST(Block, APredictionIsComparedWithTheLossOfItsOwnVersion) {
  // Two under way: each version's loss comes when the next is in force.
  BlockSettings settings;
  settings.ahead = 2;
  Block block = make_block(settings);
  const auto loss_of = [](const std::vector<float>& x) { return bowl(x); };
  std::deque<double> due{loss_of(block.current())};
  block.in_force(0);
  double best = 1e9;
  std::optional<Move> made;
  for (int k = 1; k < 60; ++k) {
    move(block);
    made = block.in_force(k);
    due.push_back(loss_of(block.current()));
    block.result(k - 1, due.front(), due.front() < best);
    best = std::min(best, due.front());
    due.pop_front();
  }
  EXPECT_TRUE(std::isfinite(made.value().rank_correlation));
}

TEST(Block, AfterLossItMovesOnlyWhenTheVersionInForceHasALoss) {
  BlockSettings settings;
  settings.move_after = MoveAfter::loss;
  settings.ahead = 2;
  Block block = make_block(settings);
  EXPECT_FALSE(block.may_move());
  block.in_force(0);
  block.in_force(1);
  block.result(0, 1.0, true);
  EXPECT_TRUE(block.may_move());
  move(block);
  block.result(1, 1.0, false);  // of the old version
  EXPECT_FALSE(block.may_move());
}

TEST(Block, ANonFiniteLossIsTheWorstOfTheWindowAndNeverSpreads) {
  Block block = make_block();
  block.in_force(0);
  block.result(0, std::numeric_limits<double>::quiet_NaN(), false);
  EXPECT_EQ(block.window_size(), 0u);
  EXPECT_TRUE(block.may_move());
  for (int k = 1; k < 12; ++k) {
    move(block);
    for (const float value : block.current()) ASSERT_TRUE(std::isfinite(value));
    block.in_force(k);
    block.result(k, k % 3 == 0 ? std::numeric_limits<double>::infinity() : 1.0 / k, k == 1);
  }
  EXPECT_EQ(block.window_size(), 11u);
}

TEST(Block, WithFewerThanFiveEntriesAMoveIsOneRandomCandidate) {
  BlockSettings none;
  none.estimator = Estimate::none;
  Block with = make_block();
  Block without = make_block(none);
  for (int k = 0; k < 4; ++k) {
    for (Block* block : {&with, &without}) {
      block->in_force(k);
      block->result(k, 1.0 + k, k == 0);
      EXPECT_FALSE(block->estimates());
      move(*block);
    }
    EXPECT_EQ(with.current(), without.current());
  }
  for (Block* block : {&with, &without}) {
    block->in_force(4);
    block->result(4, 0.3, false);
    move(*block);
  }
  EXPECT_NE(with.current(), without.current());
}

TEST(Block, ACandidateLiesWithinTheStepOfItsCentre) {
  Block block = make_block();
  descend(block, 40, bowl, 0.1);
  for (std::size_t i = 0; i < block.current().size(); ++i) {
    EXPECT_LE(std::abs(block.current()[i] - block.best()[i]), 0.1001f);
  }
}

TEST(Block, RandomNumbersDependOnSeedNameAndOwnMoveNumberAlone) {
  Block a = make_block();
  Block b = make_block();
  Block other = make_block({}, 20, "other");
  descend(a, 12, bowl);
  descend(b, 12, bowl);
  descend(other, 12, bowl);
  EXPECT_EQ(a.current(), b.current());
  EXPECT_NE(a.current(), other.current());
}

TEST(Block, LowersALossAndTheEstimatorHelps) {
  BlockSettings none;
  none.estimator = Estimate::none;
  Block with = make_block();
  Block without = make_block(none);
  const double start = bowl(with.current());
  const double plain = descend(without, 150, bowl);
  const double estimated = descend(with, 150, bowl);
  EXPECT_LT(plain, start);
  EXPECT_LT(estimated, plain);
}

TEST(Block, TheLinearEstimateLowersALossAndMovesItsCentreAlone) {
  BlockSettings linear;
  linear.estimator = Estimate::linear;
  linear.centre = Centre::mean;
  BlockSettings none;
  none.estimator = Estimate::none;
  Block with = make_block(linear);
  Block without = make_block(none);
  const double plain = descend(without, 300, bowl);
  const double estimated = descend(with, 300, bowl);
  EXPECT_LT(estimated, plain);
}

TEST(Block, SaysHowWellItsPredictionsRank) {
  Block block = make_block();
  descend(block, 60, bowl);
  block.in_force(60);
  block.result(60, bowl(block.current()), false);
  move(block);
  const auto made = block.in_force(61);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->number, 60u);
  EXPECT_EQ(made->newest, 60);
  EXPECT_TRUE(std::isfinite(made->predicted));
  EXPECT_LE(std::abs(made->rank_correlation), 1.0);
}

TEST(RankCorrelation, IsSpearmans) {
  EXPECT_NEAR(rank_correlation({{1, 10}, {2, 20}, {3, 90}}), 1, 1e-12);
  EXPECT_NEAR(rank_correlation({{1, 9}, {2, 8}, {3, 1}}), -1, 1e-12);
  EXPECT_TRUE(std::isnan(rank_correlation({{1, 1}, {2, 2}})));
  EXPECT_TRUE(std::isnan(rank_correlation({{1, 1}, {2, 1}, {3, 1}})));
}

TEST(Block, ForgetsAndReturnsToItsBestWhenTheSetChanges) {
  Block block = make_block();
  descend(block, 10, bowl);
  const std::vector<float> best = block.best();
  block.forget();
  EXPECT_EQ(block.window_size(), 0u);
  EXPECT_FALSE(block.may_move());
  block.return_to_best();
  EXPECT_EQ(block.current(), best);
  block.in_force(10);
  block.result(10, 5.0, true);
  EXPECT_TRUE(block.may_move());
  EXPECT_EQ(block.best(), best);
}

TEST(Block, KeepsNoMoreCopiesThanEvaluationsWithoutAnAnswer) {
  Block block = make_block();
  for (int k = 0; k < 3; ++k) block.in_force(k);
  EXPECT_EQ(block.pending(), 3u);
  block.result(0, 1.0, true);
  EXPECT_EQ(block.pending(), 2u);
}

}  // namespace
}  // namespace orrery::nd_cao
