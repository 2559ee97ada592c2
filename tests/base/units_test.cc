#include "base/units.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hh"
#include "base/option.hh"
#include "base/philox.hh"

namespace orrery {
namespace {

std::string error_of(void (*parse)()) {
  try {
    parse();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Units, Durations) {
  EXPECT_EQ(parse_duration("20ms").ns, 20'000'000);
  EXPECT_EQ(parse_duration("1.5s").ns, 1'500'000'000);
  EXPECT_EQ(parse_duration("250us").ns, 250'000);
  EXPECT_EQ(parse_duration("250µs").ns, 250'000);
  EXPECT_EQ(parse_duration("2min").ns, 120'000'000'000);
  EXPECT_EQ(parse_duration("0").ns, 0);
  EXPECT_EQ(error_of([] { parse_duration("20"); }),
            "'20' has no unit; write one of ns, us, ms, s, min, h, as in 20ms");
  EXPECT_EQ(error_of([] { parse_duration("20parsec"); }),
            "'parsec' is not a unit of a duration; write one of ns, us, ms, s, min, h, as in 20ms");
  EXPECT_THAT(error_of([] { parse_duration("-1s"); }), testing::HasSubstr("negative"));
  EXPECT_THAT(error_of([] { parse_duration("soon"); }), testing::HasSubstr("not a quantity"));
  EXPECT_THAT(error_of([] { parse_duration("1e30h"); }), testing::HasSubstr("too large"));
  EXPECT_THAT(error_of([] { parse_duration("nans"); }), testing::HasSubstr("not a quantity"));
}

TEST(Units, RatesAreNeverMisread) {
  EXPECT_EQ(parse_bit_rate("100Mbit/s").bits_per_second, 100'000'000);
  EXPECT_EQ(parse_bit_rate("12.5MB/s").bits_per_second, 100'000'000);
  EXPECT_EQ(parse_bit_rate("1Gbit/s").bits_per_second, 1'000'000'000);
  EXPECT_THAT(error_of([] { parse_bit_rate("100mbps"); }), testing::HasSubstr("Mbit/s or MB/s"));
  EXPECT_THAT(error_of([] { parse_bit_rate("100Mbps"); }), testing::HasSubstr("Mbit/s or MB/s"));
}

TEST(Units, SizesAndProbabilities) {
  EXPECT_EQ(parse_bytes("256KiB").count, 262'144);
  EXPECT_EQ(parse_bytes("10MB").count, 10'000'000);
  EXPECT_DOUBLE_EQ(parse_probability("0.1%").value, 0.001);
  EXPECT_DOUBLE_EQ(parse_probability("0.25").value, 0.25);
  EXPECT_THAT(error_of([] { parse_probability("150%"); }), testing::HasSubstr("outside"));
}

TEST(Units, TextsComeBackAsTheSameValue) {
  for (const std::int64_t ns : {0ll, 1ll, 999ll, 1'000ll, 123456789012345ll, 1'500'000ll,
                                20'000'000ll, 123'456'789ll, 3'600'000'000'000ll})
    EXPECT_EQ(parse_duration(to_string(Duration{ns})).ns, ns) << to_string(Duration{ns});
  for (const std::int64_t rate : {0ll, 1ll, 1'234ll, 56'000ll, 100'000'000ll, 1'234'567'891ll})
    EXPECT_EQ(parse_bit_rate(to_string(BitRate{rate})).bits_per_second, rate);
  for (const std::int64_t count : {0ll, 1ll, 1500ll, 1536ll, 1ll << 20, (1ll << 30) + 1})
    EXPECT_EQ(parse_bytes(to_string(Bytes{count})).count, count);
  for (const double p : {0.0, 0.001, 0.333, 1.0})
    EXPECT_NEAR(parse_probability(to_string(Probability{p})).value, p, 1e-12);
}

TEST(Units, TimeOnALine) {
  EXPECT_EQ(BitRate::mbit(100).time_for(1538).ns, 123'040);
  EXPECT_EQ(BitRate{3}.time_for(1).ns, 2'666'666'667);
  EXPECT_EQ(BitRate{1'000'000'000'000}.time_for(1'000'000'000'000).ns, 8'000'000'000);
}

// Known answers of the reference implementation (Random123's kat_vectors, philox4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  const auto zeros = philox4x32(0, 0, 0);
  EXPECT_EQ(zeros, (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(philox4x32(ones, ones, ones),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, StreamsDifferByEachPartOfTheirName) {
  const auto first = [](std::uint64_t seed, const char* name, std::uint64_t sequence) {
    return Philox(seed, name, sequence).next_u64();
  };
  EXPECT_EQ(first(1, "a", 0), first(1, "a", 0));
  EXPECT_NE(first(1, "a", 0), first(2, "a", 0));
  EXPECT_NE(first(1, "a", 0), first(1, "b", 0));
  EXPECT_NE(first(1, "a", 0), first(1, "a", 1));
}

TEST(Philox, MomentsAreRight) {
  Philox random(7, "moments");
  double sum = 0, squares = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.015);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(7), 7u);
}

TEST(Options, DefaultsAndMisuse) {
  const Options options(
      {{.name = "rate", .kind = OptionKind::number, .fallback = 0.5, .help = ""}});
  EXPECT_DOUBLE_EQ(options.number("rate"), 0.5);
  EXPECT_THROW(options.number("other"), std::logic_error);
  EXPECT_THROW(options.integer("rate"), std::logic_error);
}

}  // namespace
}  // namespace orrery
