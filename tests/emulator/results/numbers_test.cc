#include "emulator/results/numbers.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace orrery::results {
namespace {

TEST(SecondsText, HasNineDecimalsAndComesFromIntegers) {
  EXPECT_EQ(seconds_text(0), "0.000000000");
  EXPECT_EQ(seconds_text(1), "0.000000001");
  EXPECT_EQ(seconds_text(1'500), "0.000001500");
  EXPECT_EQ(seconds_text(-1'000'000'001), "-1.000000001");
  EXPECT_EQ(seconds_text(std::numeric_limits<std::int64_t>::max()), "9223372036.854775807");
  EXPECT_EQ(seconds_text(std::numeric_limits<std::int64_t>::min()), "-9223372036.854775808");
}

TEST(NumberText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(2), "2");
  EXPECT_EQ(number_text(std::nan("")), "nan");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(BytesText, KeepsThreeDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(999'499), "999 kB");
  EXPECT_EQ(bytes_text(999'500), "1.00 MB");
  EXPECT_EQ(bytes_text(12'345'678), "12.3 MB");
}

TEST(DurationText, ChangesUnit) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(50e-6), "50.0 µs");
  EXPECT_EQ(duration_text(0.02), "20.0 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(3720), "1 h 02 min");
  EXPECT_EQ(duration_text(std::nan("")), "–");
}

TEST(CsvField, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
}

}  // namespace
}  // namespace orrery::results
