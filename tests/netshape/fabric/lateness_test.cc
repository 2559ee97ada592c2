#include "netshape/fabric/lateness.hh"

#include <gtest/gtest.h>

namespace orrery::netshape {
namespace {

TEST(Lateness, OfNothingIsZero) {
  const Lateness none;
  EXPECT_EQ(none.percentile(0.99).ns, 0);
  EXPECT_EQ(none.count(), 0);
}

TEST(Lateness, EarlyCountsAsOnTime) {
  Lateness late;
  late.add({-5});
  EXPECT_EQ(late.percentile(1).ns, 0);
}

TEST(Lateness, PercentilesAreWithinACell) {
  Lateness late;
  for (std::int64_t i = 1; i <= 100'000; ++i) late.add({i * 100});
  for (const double share : {0.01, 0.5, 0.9, 0.99}) {
    const double exact = share * 1e7;
    const auto read = static_cast<double>(late.percentile(share).ns);
    EXPECT_GE(read, exact) << share;
    EXPECT_LE(read, exact * 17 / 16) << share;
  }
  EXPECT_EQ(late.largest().ns, 10'000'000);
  EXPECT_EQ(late.percentile(1).ns, 10'000'000);
}

TEST(Lateness, SmallValuesAreExact) {
  for (std::int64_t ns = 0; ns < 32; ++ns) {
    Lateness late;
    late.add({ns});
    late.add({1'000'000});
    EXPECT_EQ(late.percentile(0.5).ns, ns);
  }
}

TEST(Lateness, HoursFit) {
  Lateness late;
  late.add(Duration::seconds(36000));
  EXPECT_EQ(late.percentile(0.5), Duration::seconds(36000));
}

}  // namespace
}  // namespace orrery::netshape
