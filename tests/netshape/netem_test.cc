#include "netshape/netem.hh"

#include <gtest/gtest.h>
#include <linux/pkt_sched.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

Netem full() {
  Netem netem;
  netem.latency_ns = 20'000'000;
  netem.jitter_ns = 1'000'000;
  netem.limit = 1234;
  netem.loss = share(0.01);
  netem.duplicate = share(0.02);
  netem.corrupt = share(0.005);
  netem.reorder = share(0.25);
  netem.gap = 1;
  netem.rate = 12'500'000;
  netem.packet_overhead = 24;
  return netem;
}

// What `tc` of iproute2 6.1.0 sends as TCA_OPTIONS for
//   netem limit 1234 delay 20ms 1ms loss 1% reorder 25% gap 1 corrupt 0.5% duplicate 2%
//         rate 100mbit 24
const char* const tc_full =
    "b4c40400d2040000295c8f020100000052b81e05093d0000"
    "0c00030000000040000000000c00040014ae470100000000"
    "1400060020bcbe00180000000000000000000000";
// and for: netem limit 50 rate 80gbit
const char* const tc_fast =
    "000000003200000000000000000000000000000000000000"
    "0c00080000e40b540200000014000600ffffffff000000000000000000000000";

TEST(Netem, ReadsWhatTcSends) {
  EXPECT_TRUE(compare(full(), decode(from_hex(tc_full))).empty());
  Netem fast;
  fast.limit = 50;
  fast.rate = 10'000'000'000;
  EXPECT_EQ(decode(from_hex(tc_fast)), fast);
}

TEST(Netem, SendsTheSameBytesAsTcForWhatTcSends) {
  const std::vector<std::byte> ours = encode(full());
  const std::vector<std::byte> theirs = from_hex(tc_full);
  const std::size_t head = sizeof(tc_netem_qopt);
  EXPECT_TRUE(std::equal(theirs.begin(), theirs.begin() + head, ours.begin()));
  for (std::size_t at = head; at < theirs.size();) {
    const auto size = static_cast<std::size_t>(theirs[at]);
    const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    EXPECT_NE(std::search(ours.begin(), ours.end(), begin, end), ours.end()) << "at " << at;
    at += size;
  }
}

// What the same `tc` sends as TCA_OPTIONS for
//   netem limit 1000 loss gemodel 1% 10% 70% 0.1%
const char* const tc_two_states =
    "00000000e8030000000000000000000000000000000000001800058014000200295c8f029a999919cdcccc4c378941"
    "00";
// and for: netem limit 1000 loss state 1% 20% 30% 40% 0.5%
const char* const tc_four_states =
    "00000000e8030000000000000000000000000000000000001c00058018000100295c8f0233333333cccccc4c14ae47"
    "01"
    "66666666";

TEST(Netem, LossesInBurstsAreTcs) {
  const auto check = [](const char* theirs, const BurstLoss& loss) {
    Netem netem;
    netem.chain = shares(loss);
    EXPECT_EQ(decode(from_hex(theirs)), netem) << theirs;
    EXPECT_EQ(decode(encode(netem)), netem);
    const std::vector<std::byte> ours = encode(netem);
    const std::vector<std::byte> bytes = from_hex(theirs);
    EXPECT_NE(
        std::search(ours.begin(), ours.end(), bytes.begin() + sizeof(tc_netem_qopt), bytes.end()),
        ours.end())
        << theirs;
    EXPECT_EQ(compare(netem, Netem{}).at(0).field, "loss model (of 2^32)");
  };
  check(tc_two_states, GilbertElliott{{0.01}, {0.1}, {0.7}, {0.001}});
  check(tc_four_states, FourState{{0.01}, {0.2}, {0.3}, {0.4}, {0.005}});
  EXPECT_THROW(decode(from_hex("00000000e80300000000000000000000000000000000000008000580040003")),
               Error);
}

TEST(Netem, SurvivesTheRoundTrip) {
  Netem netem = full();
  netem.latency_ns = 300'000'000'007;  // more than 32 bits of scheduler ticks
  netem.rate = 1'000'000'000'000'000;
  netem.seed = 0x0123456789abcdef;
  netem.packet_overhead = -4;
  Netem read = decode(encode(netem));
  EXPECT_EQ(read, netem);
}

TEST(Netem, ZerosAreSentToo) {
  // A change that leaves an attribute out keeps the old value, so nothing may be left out.
  std::vector<int> types;
  const std::vector<std::byte> bytes = encode(Netem{});
  for (std::size_t at = sizeof(tc_netem_qopt); at < bytes.size();) {
    const auto size = static_cast<std::size_t>(bytes[at]) | static_cast<std::size_t>(bytes[at + 1])
                                                                << 8;
    types.push_back(static_cast<int>(bytes[at + 2]));
    at += (size + 3) & ~std::size_t{3};
  }
  EXPECT_EQ(types, (std::vector<int>{TCA_NETEM_CORR, TCA_NETEM_REORDER, TCA_NETEM_CORRUPT,
                                     TCA_NETEM_RATE, TCA_NETEM_ECN, TCA_NETEM_SLOT,
                                     TCA_NETEM_LATENCY64, TCA_NETEM_JITTER64}));
}

TEST(Netem, TablesHaveTheMomentsTheyPromise) {
  const auto moments = [](DelayTable kind) {
    const auto& table = quantiles(kind);
    const double n = static_cast<double>(table.size());
    const double mean = std::accumulate(table.begin(), table.end(), 0.0) / n;
    double squares = 0;
    for (const auto value : table) squares += (value - mean) * (value - mean);
    return std::pair{mean / NETEM_DIST_SCALE, std::sqrt(squares / n) / NETEM_DIST_SCALE};
  };
  EXPECT_NEAR(moments(DelayTable::normal).first, 0, 1e-6);
  EXPECT_NEAR(moments(DelayTable::normal).second, 1, 1e-4);
  EXPECT_NEAR(moments(DelayTable::uniform).first, 0, 1e-6);
  EXPECT_NEAR(moments(DelayTable::uniform).second, 1 / std::sqrt(3.0), 1e-4);
  for (const DelayTable kind : {DelayTable::pareto, DelayTable::paretonormal}) {
    EXPECT_NEAR(moments(kind).first, 0, 1e-4) << to_string(kind);
    EXPECT_NEAR(moments(kind).second, 1, 1e-3) << to_string(kind);
    // As far as a table reaches, and skewed: more than half arrive before the mean.
    EXPECT_GT(quantiles(kind).back(), 32'700) << to_string(kind);
    EXPECT_LT(quantiles(kind)[2048], -1000) << to_string(kind);
    EXPECT_TRUE(std::is_sorted(quantiles(kind).begin(), quantiles(kind).end()));
  }
  // Median, and one sigma, of the normal one.
  const auto& normal = quantiles(DelayTable::normal);
  EXPECT_NEAR(normal[normal.size() / 2], 0, 3);
  EXPECT_NEAR(normal[static_cast<std::size_t>(0.841345 * static_cast<double>(normal.size()))], 8192,
              20);
}

TEST(Netem, ComparisonNamesTheField) {
  Netem applied = full();
  applied.limit = 1000;
  const auto wrong = compare(full(), applied);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].field, "limit (packets)");
  EXPECT_EQ(wrong[0].asked, "1234");
  EXPECT_EQ(wrong[0].applied, "1000");
}

TEST(Netem, RefusesBytesThatAreNotIts) {
  EXPECT_THROW(decode(from_hex("0011")), Error);
  std::string cut = tc_full;
  cut.resize(cut.size() - 8);
  EXPECT_THROW(decode(from_hex(cut)), Error);
  // An attribute of no length would be read for ever.
  EXPECT_THROW(decode(from_hex(std::string(48, '0') + "00000300")), Error);
}

TEST(Netem, SharesAreRoundedAsTcDoes) {
  EXPECT_EQ(share(0), 0u);
  EXPECT_EQ(share(1), 0xffffffffu);
  EXPECT_EQ(share(0.01), 42949673u);
}

}  // namespace
}  // namespace orrery::netshape
