#include "netshape/fabric/impairments.hh"

#include <gtest/gtest.h>

#include <cmath>

#include "netshape/netem.hh"

namespace orrery::netshape {
namespace {

// log C(n, k) + k log p + (n - k) log(1 - p), summed up to `most`: Clopper and Pearson's interval
// holds `count` where neither tail is below its half of 1 - level.
double binomial_up_to(std::int64_t most, std::int64_t n, double p) {
  double sum = 0;
  for (std::int64_t k = 0; k <= most; ++k) {
    const double chosen = std::lgamma(static_cast<double>(n) + 1) -
                          std::lgamma(static_cast<double>(k) + 1) -
                          std::lgamma(static_cast<double>(n - k) + 1);
    sum += std::exp(chosen + static_cast<double>(k) * std::log(p) +
                    static_cast<double>(n - k) * std::log1p(-p));
  }
  return sum;
}

bool inside_99(std::int64_t count, std::int64_t n, double p) {
  return binomial_up_to(count, n, p) > 0.005 && 1 - binomial_up_to(count - 1, n, p) > 0.005;
}

LinkModel seeded(std::uint64_t seed) {
  LinkModel model;
  model.seed = seed;
  return model;
}

TEST(Impairments, WithoutAnyAllPacketsArePlain) {
  LinkModel model = seeded(1);
  model.delay = Duration::milliseconds(3);
  Impairments stream(model);
  for (int i = 0; i < 100; ++i) {
    const Fate fate = stream.draw(true);
    EXPECT_FALSE(fate.lost || fate.duplicated || fate.corrupted || fate.hurried || fate.marked);
    EXPECT_EQ(fate.delay, model.delay);
  }
}

TEST(Impairments, LossesAreInsideTheExact99PercentInterval) {
  for (const double p : {0.0001, 0.001, 0.01, 0.1, 0.5}) {
    LinkModel model = seeded(7);
    model.loss = chance({p});
    Impairments stream(model);
    constexpr int n = 100'000;
    int lost = 0;
    for (int i = 0; i < n; ++i) lost += stream.draw(false).lost;
    EXPECT_TRUE(inside_99(lost, n, p)) << lost << " of " << n << " at " << p;
  }
}

TEST(Impairments, OtherChancesAreIndependentAndInsideTheirIntervals) {
  LinkModel model = seeded(11);
  model.duplicate = chance({0.02});
  model.corrupt = chance({0.03});
  model.reorder = chance({0.25});
  model.loss = chance({0.1});
  Impairments stream(model);
  constexpr int n = 50'000;
  int duplicated = 0, corrupted = 0, hurried = 0, both = 0;
  for (int i = 0; i < n; ++i) {
    const Fate fate = stream.draw(false);
    duplicated += fate.duplicated;
    corrupted += fate.corrupted;
    hurried += fate.hurried;
    both += fate.lost && fate.hurried;
  }
  EXPECT_TRUE(inside_99(duplicated, n, 0.02)) << duplicated;
  EXPECT_TRUE(inside_99(corrupted, n, 0.03)) << corrupted;
  EXPECT_TRUE(inside_99(hurried, n, 0.25)) << hurried;
  EXPECT_TRUE(inside_99(both, n, 0.025)) << both;
}

TEST(Impairments, CertaintyIsCertain) {
  LinkModel model = seeded(3);
  model.loss = chance({1});
  Impairments stream(model);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(stream.draw(false).lost);
}

TEST(Impairments, MarksInsteadOfLosingWhoSpeaksEcn) {
  LinkModel model = seeded(3);
  model.loss = chance({1});
  model.mark_losses = true;
  Impairments stream(model);
  const Fate speaker = stream.draw(true);
  EXPECT_TRUE(speaker.marked && !speaker.lost);
  const Fate other = stream.draw(false);
  EXPECT_TRUE(other.lost && !other.marked);
}

TEST(Impairments, TheSameSeedDrawsTheSameAnotherSeedDoesNot) {
  const auto losses = [](std::uint64_t seed) {
    LinkModel model = seeded(seed);
    model.loss = chance({0.3});
    Impairments stream(model);
    std::vector<bool> all;
    for (int i = 0; i < 200; ++i) all.push_back(stream.draw(false).lost);
    return all;
  };
  EXPECT_EQ(losses(5), losses(5));
  EXPECT_NE(losses(5), losses(6));
}

TEST(Impairments, AChangeOfOddsDoesNotMoveTheStream) {
  LinkModel first = seeded(9);
  first.loss = chance({0.5});
  LinkModel second = first;
  second.loss = chance({0.25});
  Impairments changed(first);
  Impairments steady(second);
  for (int i = 0; i < 50; ++i) {
    changed.draw(false);
    steady.draw(false);
  }
  changed.change(second);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(changed.draw(false).lost, steady.draw(false).lost);
}

double deviation_of(DelayTable table, double& mean) {
  LinkModel model = seeded(21);
  model.delay = Duration::milliseconds(20);
  model.jitter = Duration::milliseconds(2);
  model.quantiles = quantiles(table);
  Impairments stream(model);
  constexpr int n = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double ms = stream.draw(false).delay.in_milliseconds();
    sum += ms;
    squares += ms * ms;
  }
  mean = sum / n;
  return std::sqrt(squares / n - mean * mean);
}

TEST(Impairments, NormalJitterHasItsDeviation) {
  double mean = 0;
  EXPECT_NEAR(deviation_of(DelayTable::normal, mean), 2, 0.03);
  EXPECT_NEAR(mean, 20, 0.02);
}

TEST(Impairments, UniformJitterIsAHalfRange) {
  double mean = 0;
  EXPECT_NEAR(deviation_of(DelayTable::uniform, mean), 2 / std::sqrt(3), 0.02);
  EXPECT_NEAR(mean, 20, 0.02);
}

}  // namespace
}  // namespace orrery::netshape
