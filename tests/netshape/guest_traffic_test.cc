// What packets meet: delays, rates, losses, queues. Run inside the time-travel kernel, where each
// figure is exact to what one reading of the clock costs (256 ns).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "netshape/kernel_backend.hh"
#include "netshape/shapes.hh"
#include "tests/netshape/traffic.hh"

namespace orrery::netshape::test {
namespace {

Instant now() { return {now_ns()}; }

LinkSpec link(double mbit, std::int64_t delay_us) {
  LinkSpec spec;
  spec.delay = Duration::microseconds(delay_us);
  spec.rate = BitRate::mbit(mbit);
  return spec;
}

// Two nodes; everything of interest on the way from a to the switch.
class Traffic : public testing::Test {
 protected:
  void build(const LinkSpec& up, const LinkSpec& rest = {}) {
    backend_.apply(plan(star({{"a", up, rest}, {"b", rest, rest}}), 1));
  }
  LinkCounters counters(const std::string& name) {
    for (const LinkCounters& one : backend_.counters())
      if (one.link == name) return one;
    throw std::logic_error(name);
  }
  KernelBackend backend_{now};
};

struct Line {
  double mbit;
  std::int64_t delay_us;
};
class OneWay : public Traffic, public testing::WithParamInterface<Line> {};

TEST_P(OneWay, IsDelayAndSerialisation) {
  const LinkSpec spec = link(GetParam().mbit, GetParam().delay_us);
  build(spec, spec);
  const Plan& plan = backend_.current();
  Udp udp(backend_, "a", "b");
  for (const std::int64_t payload : {32, 500, 1472}) {
    udp.send(0, payload);
    const auto arrival = udp.receive(10'000'000'000);
    ASSERT_TRUE(arrival);
    EXPECT_NEAR(static_cast<double>(arrival->one_way()),
                static_cast<double>(crossing_time(plan, plan.path("a", "b"), payload + 28).ns),
                20e3)
        << payload << " B";
  }
}
INSTANTIATE_TEST_SUITE_P(Links, OneWay,
                         testing::Values(Line{1, 50'000}, Line{10, 500}, Line{100, 20'000},
                                         Line{1000, 100}, Line{10'000, 10}, Line{100, 2'000'000}));

TEST_F(Traffic, UdpArrivesAtTheRateOfTheWire) {
  LinkSpec spec = link(100, 10'000);
  spec.queue = Duration::milliseconds(500);
  build(spec);
  Udp udp(backend_, "a", "b");
  for (std::uint32_t i = 0; i < 2000; ++i) udp.send(i, 1472);
  const auto arrivals = udp.receive_all(1'000'000'000);
  ASSERT_EQ(arrivals.size(), 2000u);
  const double seconds = static_cast<double>(arrivals.back().ns - arrivals.front().ns) * 1e-9;
  EXPECT_NEAR(1999 * 1538 * 8 / seconds, 100e6, 100e6 * 1e-5);
}

class Goodput : public Traffic, public testing::WithParamInterface<Line> {};

TEST_P(Goodput, OfTcpIsWhatFramingLeaves) {
  LinkSpec spec = link(GetParam().mbit, GetParam().delay_us);
  // On a slow link the default of 50 ms is some ten frames, and a loss there takes TCP seconds to
  // make good: give it room for all that is sent before its window settles.
  if (GetParam().mbit < 10) spec.queue = Duration::seconds(2);
  build(spec, spec);
  const PathPlan& path = backend_.current().path("a", "b");
  const double rate = static_cast<double>(path.tcp_goodput->bits_per_second);
  const double seconds = std::max(5.0, 40 * path.round_trip.in_seconds());
  // Still thousands of BDP where the bound holds.
  const auto bytes =
      std::min<std::int64_t>(static_cast<std::int64_t>(rate / 8 * seconds), 60 << 20);
  const auto samples = tcp(backend_, "a", "b", bytes, 1000);
  // Not the end: a last packet that its queue drops comes some round trips later, on its own.
  const auto arrived = [&](std::int64_t part) {
    return std::lower_bound(samples.begin(), samples.end(), part,
                            [](const Sample& s, std::int64_t b) { return s.bytes < b; });
  };
  const auto from = arrived(bytes / 2);
  const auto to = arrived(bytes - bytes / 20);
  const double measured =
      8e9 * static_cast<double>(to->bytes - from->bytes) / static_cast<double>(to->ns - from->ns);
  EXPECT_NEAR(measured, rate, 0.005 * rate);
}
INSTANTIATE_TEST_SUITE_P(Links, Goodput,
                         testing::Values(Line{2, 5'000}, Line{20, 20'000}, Line{100, 1'000},
                                         Line{1000, 100}));

// Slow start as RFC 5681 and RFC 6928 have it, by hand: ten segments at once, and each
// acknowledgement brings as many more as it confirms; a line that is busy delays what comes. The
// reverse way costs its delay and the acknowledgement's own time on two lines.
double slow_start_seconds(std::int64_t bytes, double rate, double one_way, double frame,
                          double ack) {
  const double segment = 1448;
  const auto total = static_cast<std::size_t>(std::ceil(static_cast<double>(bytes) / segment));
  const double line = frame * 8 / rate;
  const double back = one_way + 2 * ack * 8 / rate;
  std::vector<double> arrive;
  std::vector<double> may_send(total, 1e9);
  for (std::size_t i = 0; i < std::min<std::size_t>(10, total); ++i) may_send[i] = 0;
  double free_at = 0;
  std::size_t released = std::min<std::size_t>(10, total);
  for (std::size_t i = 0; i < total; ++i) {
    const double start = std::max(may_send[i], free_at);
    free_at = start + line;
    arrive.push_back(start + 2 * line + one_way);
    // Quick acknowledgements at first, one for each segment: two more segments each.
    for (int k = 0; k < 2 && released < total; ++k) may_send[released++] = arrive.back() + back;
  }
  return arrive.back();
}

TEST_F(Traffic, ShortTransfersFollowSlowStart) {
  const LinkSpec spec = link(100, 10'000);
  build(spec, spec);
  for (const std::int64_t bytes : {10'000, 40'000, 100'000, 300'000}) {
    const auto samples = tcp(backend_, "a", "b", bytes, 1000);
    const double expected = slow_start_seconds(bytes, 100e6, 0.020, 1538, 90);
    EXPECT_NEAR(static_cast<double>(samples.back().ns) * 1e-9, expected, 0.03 * expected) << bytes;
  }
}

// The bounds that a binomial count leaves with probability below 1e-6 on each side.
std::pair<int, int> binomial_interval(int n, double p) {
  double log_term = n * std::log1p(-p);
  double sum = 0;
  int low = -1;
  for (int k = 0; k <= n; ++k) {
    sum += std::exp(log_term);
    if (low < 0 && sum > 1e-6) low = k;
    if (sum > 1 - 1e-6) return {low, k};
    log_term += std::log(static_cast<double>(n - k) / (k + 1)) + std::log(p) - std::log1p(-p);
  }
  return {std::max(low, 0), n};
}

TEST_F(Traffic, LossIsABinomialCount) {
  LinkSpec spec = link(1000, 1'000);
  spec.loss = {0.01};
  build(spec);
  Udp udp(backend_, "a", "b");
  const int n = 20'000;
  int arrived = 0;
  for (int sent = 0; sent < n; sent += 1000) {
    for (int i = 0; i < 1000; ++i) udp.send(0, 32);
    arrived += static_cast<int>(udp.receive_all(20'000'000).size());
  }
  const auto [low, high] = binomial_interval(n, 0.01);
  EXPECT_GE(n - arrived, low);
  EXPECT_LE(n - arrived, high);
  const LinkCounters counted = counters("a->switch");
  EXPECT_EQ(counted.loss_drops, n - arrived);
  EXPECT_EQ(counted.queue_drops, 0);
}

TEST_F(Traffic, LossesInBurstsHaveTheirShareAndTheirLength) {
  LinkSpec spec = link(1000, 1'000);
  build(spec);
  for (const BurstLoss& loss :
       {BurstLoss{gilbert({0.02}, 5)}, BurstLoss{FourState{{0.02}, {0.4}, {0.3}, {0.5}, {0.01}}}}) {
    spec.burst_loss = loss;
    backend_.change(std::vector<LinkChange>{{"a->switch", spec}}, {});
    Udp udp(backend_, "a", "b");
    const std::uint32_t n = 40'000;
    std::vector<bool> arrived(n);
    for (std::uint32_t sent = 0; sent < n; sent += 1000) {
      for (std::uint32_t i = sent; i < sent + 1000; ++i) udp.send(i, 32);
      for (const Arrival& arrival : udp.receive_all(20'000'000)) arrived.at(arrival.number) = true;
    }
    double lost = 0;
    double runs = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      lost += !arrived[i];
      runs += !arrived[i] && (i == 0 || arrived[i - 1]);
    }
    // Losses hang together, so their number spreads more widely than a binomial one.
    EXPECT_NEAR(lost / n / mean_loss(loss), 1, 0.15) << to_string(loss);
    if (std::holds_alternative<GilbertElliott>(loss)) {
      EXPECT_NEAR(lost / runs, 5, 0.75);
    }
  }
}

class Jitter : public Traffic, public testing::WithParamInterface<Distribution> {};

DelayTable table_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::uniform:
      return DelayTable::uniform;
    case Distribution::normal:
      return DelayTable::normal;
    case Distribution::pareto:
      return DelayTable::pareto;
    case Distribution::paretonormal:
      return DelayTable::paretonormal;
  }
  return DelayTable::none;
}

TEST_P(Jitter, IsDistributedAsAsked) {
  LinkSpec spec = link(1000, 50'000);
  spec.jitter = Duration::milliseconds(5);
  spec.distribution = GetParam();
  build(spec);
  Udp udp(backend_, "a", "b");
  // So many that even of a heavy tail's standard deviation 3 % are more than two standard errors.
  const int n = 8000;
  std::vector<double> delays;
  for (int i = 0; i < n; ++i) {
    udp.send(0, 32);
    delays.push_back(static_cast<double>(udp.arrival().one_way()) * 1e-6 - 50.001);
  }
  std::sort(delays.begin(), delays.end());
  const double mean = std::accumulate(delays.begin(), delays.end(), 0.0) / n;
  double squares = 0;
  for (const double delay : delays) squares += (delay - mean) * (delay - mean);
  const double expected = GetParam() == Distribution::uniform ? 5 / std::sqrt(3.0) : 5;
  EXPECT_NEAR(mean, 0, 4 * expected / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n) / expected, 1, 0.03);

  // Kolmogorov and Smirnov: the largest distance of the two distribution functions.
  const std::vector<std::int16_t>& table = quantiles(table_of(GetParam()));
  double distance = 0;
  for (int i = 0; i < n; ++i) {
    const double unit = delays[static_cast<std::size_t>(i)] / 5 * 8192;
    const double below = static_cast<double>(
        std::upper_bound(table.begin(), table.end(), unit,
                         [](double value, std::int16_t entry) { return value < entry; }) -
        table.begin());
    const double p = below / static_cast<double>(table.size());
    distance = std::max({distance, std::abs(p - static_cast<double>(i) / n),
                         std::abs(p - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance, 1.63 / std::sqrt(n));
}
INSTANTIATE_TEST_SUITE_P(All, Jitter,
                         testing::Values(Distribution::normal, Distribution::uniform,
                                         Distribution::pareto, Distribution::paretonormal));

TEST_F(Traffic, ShareOfPacketsComesTwiceOrDamagedOrEarly) {
  LinkSpec spec = link(1000, 10'000);
  spec.reorder = {0.2};
  build(spec);
  const std::uint32_t n = 4000;
  const auto count = [&](const auto& what) {
    Udp udp(backend_, "a", "b");
    double hits = 0;
    for (std::uint32_t sent = 0; sent < n; sent += 500) {
      for (std::uint32_t i = sent; i < sent + 500; ++i) udp.send(i, 32);
      hits += static_cast<double>(what(udp.receive_all(100'000'000)));
    }
    return hits / n;
  };
  const auto early = [](const std::vector<Arrival>& arrivals) {
    return std::count_if(arrivals.begin(), arrivals.end(),
                         [](const Arrival& arrival) { return arrival.one_way() < 5'000'000; });
  };
  const auto extra = [](const std::vector<Arrival>& arrivals) {
    return static_cast<std::ptrdiff_t>(arrivals.size()) - 500;
  };
  EXPECT_NEAR(count(early), 0.2, 0.025);
  spec.reorder = {};
  spec.duplicate = {0.1};
  backend_.change(std::vector<LinkChange>{{"a->switch", spec}}, {});
  EXPECT_NEAR(count(extra), 0.1, 0.02);
  // A flipped bit breaks a checksum, of IP's or UDP's, and the packet goes no further; but the
  // sender's hardware address, 6 of the frame's 74 bytes, nobody looks at.
  spec.duplicate = {};
  spec.corrupt = {0.1};
  backend_.change(std::vector<LinkChange>{{"a->switch", spec}}, {});
  EXPECT_NEAR(-count(extra), 0.1 * 68 / 74, 0.02);
}

TEST_F(Traffic, JitterKeepsTheOrderUnlessAskedOtherwise) {
  LinkSpec spec = link(1000, 50'000);
  spec.jitter = Duration::milliseconds(5);
  const auto out_of_order = [this] {
    Udp udp(backend_, "a", "b");
    for (std::uint32_t i = 0; i < 200; ++i) {
      udp.send(i, 32);
      sleep_ns(100'000);
    }
    const auto arrivals = udp.receive_all(1'000'000'000);
    EXPECT_EQ(arrivals.size(), 200u);
    return !std::is_sorted(arrivals.begin(), arrivals.end(),
                           [](const Arrival& a, const Arrival& b) { return a.number < b.number; });
  };
  build(spec);
  EXPECT_FALSE(out_of_order());
  spec.keep_order = false;
  const std::vector<LinkChange> changes{{"a->switch", spec}};
  backend_.change(changes, {});
  EXPECT_TRUE(out_of_order());
}

// Payload a second over the second half of what came.
double goodput(const std::vector<Sample>& samples) {
  const Sample& middle = samples.at(samples.size() / 2);
  return static_cast<double>(samples.back().bytes - middle.bytes) * 8e9 /
         static_cast<double>(samples.back().ns - middle.ns);
}

TEST_F(Traffic, TwoFlowsShareATrunk) {
  LinkSpec access = link(1000, 100);
  const Topology dumbbell = make_shape(
      Shape::dumbbell,
      {{"a", access, access}, {"b", access, access}, {"c", access, access}, {"d", access, access}},
      link(50, 5'000), 0);
  backend_.apply(plan(dumbbell, 1));
  const double whole = 50e6 * 1448 / 1538;
  EXPECT_NEAR(goodput(tcp(backend_, "a", "c", 100 << 20, 10)) / whole, 1, 0.005);
  // Within one side nothing crosses the trunk.
  EXPECT_GT(goodput(tcp(backend_, "a", "b", 100 << 20, 1)), 10 * whole);

  // Two at a time, each from a process of its own: together they get what one had alone.
  double other = 0;
  std::thread second([&] { other = goodput(tcp(backend_, "b", "d", 100 << 20, 20)); });
  const double first = goodput(tcp(backend_, "a", "c", 100 << 20, 20));
  second.join();
  EXPECT_NEAR((first + other) / whole, 1, 0.02);
  EXPECT_GT(std::min(first, other), 0.2 * whole);
}

TEST_F(Traffic, AFatTreeCarriesFromEachToEach) {
  std::vector<StarNode> nodes;
  const LinkSpec access = link(1000, 100);
  for (int i = 0; i < 16; ++i) nodes.push_back({"n" + std::to_string(i), access, access});
  backend_.apply(plan(make_shape(Shape::fat_tree, nodes, link(1000, 200), 4), 1));
  for (const PathPlan& path : backend_.current().paths) {
    Udp udp(backend_, path.from, path.to);
    udp.send(7, 1000);
    const auto expected = static_cast<double>(crossing_time(backend_.current(), path, 1028).ns);
    EXPECT_NEAR(static_cast<double>(udp.arrival().one_way()), expected, 20e3)
        << path.from << " to " << path.to;
  }
}

TEST_F(Traffic, AFullQueueDropsItsTail) {
  // Ten frames wait and one is on the line; of a burst of 50, the first eleven arrive.
  LinkSpec spec = link(100, 20'000);
  spec.queue = Bytes{15'140};
  build(spec);
  Udp udp(backend_, "a", "b");
  for (std::uint32_t i = 0; i < 50; ++i) udp.send(i, 1472);
  const auto arrivals = udp.receive_all(1'000'000'000);
  ASSERT_EQ(arrivals.size(), 11u);
  EXPECT_EQ(arrivals.back().number, 10u);
  // The last one waited for ten frames of 123.04 us.
  const double waited = static_cast<double>(arrivals.back().one_way() - arrivals.front().one_way());
  EXPECT_NEAR(waited, 10 * 123'040, 20e3);
  const LinkCounters counted = counters("a->switch");
  EXPECT_EQ(counted.queue_drops, 39);
  EXPECT_EQ(counted.loss_drops, 0);
}

TEST_F(Traffic, CountersAreTheBytesSent) {
  LinkSpec spec = link(100, 1'000);
  build(spec, spec);
  Udp udp(backend_, "a", "b");
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::int64_t payload = 32 + 14 * static_cast<std::int64_t>(i);
    udp.send(i, payload);
    bytes += payload + 42;
  }
  udp.receive_all(1'000'000'000);
  for (const char* name : {"a->switch", "switch->b"}) {
    const LinkCounters counted = counters(name);
    EXPECT_EQ(counted.packets, 100);
    EXPECT_EQ(counted.l2_bytes, bytes);
    EXPECT_EQ(counted.wire_bytes, bytes + 2400);
    EXPECT_EQ(counted.in_flight, 0);
    EXPECT_EQ(counted.queued, 0);
  }
  EXPECT_EQ(counters("b->switch").packets, 0);
}

TEST_F(Traffic, TheTwoDirectionsAreIndependent) {
  backend_.apply(plan(star({{"a", link(100, 30'000), link(10, 1'000)}, {"b", {}, {}}}), 1));
  Udp there(backend_, "a", "b");
  Udp back(backend_, "b", "a");
  there.send(0, 32);
  EXPECT_NEAR(static_cast<double>(there.arrival().one_way()), 30.008e6, 20e3);
  back.send(0, 32);
  EXPECT_NEAR(static_cast<double>(back.arrival().one_way()), 1.078e6, 20e3);
}

}  // namespace
}  // namespace orrery::netshape::test
