#include "emulator/results/curves.hh"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emulator/results/records.hh"

namespace orrery::results {
namespace {

using namespace testing;

TEST(WireBytes, CountsEachByteWhereItLeavesANode) {
  const WireBytes bytes(
      make_log({started("r", "s", {"a", "b"}), counters(10, "a->switch", 1, 100, 0),
                counters(10, "switch->b", 1, 100, 0), counters(20, "a->switch", 2, 300, 0),
                counters(20, "b->switch", 2, 40, 0)}));
  EXPECT_EQ(bytes.total(), 340);
  EXPECT_EQ(bytes.at(0), 0);
  EXPECT_EQ(bytes.at(5), 50);
  EXPECT_EQ(bytes.at(10), 100);
  EXPECT_EQ(bytes.at(15), 220);
  EXPECT_EQ(bytes.at(99), 340);
  EXPECT_EQ(bytes.readings(), 2U);
}

TEST(WireBytes, WithoutReadingsAreZero) {
  const WireBytes bytes(make_log({}));
  EXPECT_EQ(bytes.total(), 0);
  EXPECT_EQ(bytes.at(5), 0);
}

TEST(OwnLoss, OfEvaluationsIsTheBestSoFar) {
  const RunLog log = make_log({step(1, 0, 0, "evaluation", 3), step(2, 0, 1, "evaluation", nan),
                               step(3, 0, 2, "evaluation", 5), step(4, 0, 3, "evaluation", 1)});
  const Curve curve = own_loss(log, WireBytes(log), 100);
  ASSERT_EQ(curve.points.size(), 3U);
  EXPECT_EQ(curve.points[1].value, 3);
  EXPECT_EQ(curve.points[2].value, 1);
}

TEST(OwnLoss, OfStepsIsTheMeanOfTheNodes) {
  const RunLog log = make_log(small_run());
  const Curve curve = own_loss(log, WireBytes(log), 100);
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.points[0].value, 2.5);
  EXPECT_EQ(curve.points[1].value, 1.5);
}

TEST(OwnLoss, OfManyStepsIsAveragedAndSaysSo) {
  std::vector<wire::Record> records;
  for (int k = 0; k < 1000; ++k) records.push_back(step(k, 0, k, "step", k % 3));
  const RunLog log = make_log(records);
  const Curve curve = own_loss(log, WireBytes(log), 2000);
  EXPECT_EQ(curve.name, "training loss, mean of the nodes and of 3 steps");
  ASSERT_EQ(curve.points.size(), 334U);
  EXPECT_EQ(curve.points[0].value, 1);
  EXPECT_EQ(curve.points[0].t, 2);
  EXPECT_EQ(curve.points.back().t, 999);
}

TEST(Thin, KeepsEndsSpikesAndOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({i, 0, i == 51'234 ? 1e9 : i % 7 * 0.1});
  const auto thinned = thin(points, 2000);
  EXPECT_LE(thinned.size(), 2000U);
  EXPECT_GT(thinned.size(), 1000U);
  EXPECT_EQ(thinned.front().t, 0);
  EXPECT_EQ(thinned.back().t, 99'999);
  EXPECT_TRUE(std::is_sorted(thinned.begin(), thinned.end(),
                             [](const Point& a, const Point& b) { return a.t < b.t; }));
  EXPECT_TRUE(
      std::any_of(thinned.begin(), thinned.end(), [](const Point& p) { return p.value == 1e9; }));
  EXPECT_EQ(thin(points, 1'000'000).size(), points.size());
}

}  // namespace
}  // namespace orrery::results
