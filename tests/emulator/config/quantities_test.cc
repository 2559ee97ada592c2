#include "emulator/config/quantities.hh"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hh"

namespace orrery::config {
namespace {

TEST(Quantities, ComputeAndMemoryRates) {
  EXPECT_EQ(parse_flop_rate("4GFLOP/s").per_second, 4e9);
  EXPECT_EQ(parse_flop_rate("1.5 TFLOP/s").per_second, 1.5e12);
  EXPECT_TRUE(std::isinf(parse_flop_rate("unlimited").per_second));
  EXPECT_EQ(parse_byte_rate("3GB/s").per_second, 3e9);
  for (const char* text : {"4", "4GHz", "0GFLOP/s", "-1GFLOP/s", "fast", "", "nanGFLOP/s"})
    EXPECT_THROW(parse_flop_rate(text), ValueError) << text;
  for (const char* text : {"3Gbit/s", "3GB", "infGB/s"})
    EXPECT_THROW(parse_byte_rate(text), ValueError) << text;
}

TEST(Quantities, Queues) {
  EXPECT_EQ(parse_queue("50ms"), Queue(Duration::milliseconds(50)));
  EXPECT_EQ(parse_queue("1.5bdp"), Queue(BdpMultiple{1.5}));
  EXPECT_EQ(parse_queue("256KiB"), Queue(Bytes::kib(256)));
  for (const char* text : {"0ms", "5", "3 packets", "1bpd", "-1bdp", "5Kib"})
    EXPECT_THROW(parse_queue(text), ValueError) << text;
}

TEST(Quantities, TextsReadBackExactly) {
  for (const double value : {1.0, 999.0, 23.8e9, 1.0 / 3.0 * 1e9, 123456789.123, 5.5e9, 2.531e12}) {
    EXPECT_EQ(parse_flop_rate(to_string(FlopRate{value})).per_second, value);
    EXPECT_EQ(parse_byte_rate(to_string(ByteRate{value})).per_second, value);
  }
  EXPECT_EQ(to_string(FlopRate{23.8e9}), "23.8GFLOP/s");
  EXPECT_EQ(to_string(FlopRate{}), "unlimited");
  for (const char* text : {"50ms", "1.5bdp", "256KiB"})
    EXPECT_EQ(to_string(parse_queue(text)), text);
}

}  // namespace
}  // namespace orrery::config
