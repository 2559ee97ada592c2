// The fabric for real: TAP devices, namespaces and TCP of this host's kernel. Bounds are generous,
// for other programs may be running; where /dev/net/tun cannot be opened all of it is skipped.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.hh"
#include "netshape/fabric/fabric_backend.hh"
#include "netshape/namespace.hh"
#include "netshape/user_namespace.hh"
#include "netshape/verify.hh"
#include "tests/netshape/traffic.hh"

namespace orrery::netshape {
namespace {

using test::Arrival;
using test::Sample;
using test::Udp;

// Why this host cannot; empty if it can.
std::string lacking;

LinkSpec spec(double mbit, Duration delay) {
  LinkSpec link;
  link.delay = delay;
  if (mbit > 0) link.rate = BitRate::mbit(mbit);
  return link;
}

Plan pair(const LinkSpec& link, std::uint64_t seed = 1) {
  const LinkSpec open;
  return plan(star({{"a", link, open}, {"b", open, open}}), seed);
}

class FabricOnHost : public testing::Test {
 protected:
  void SetUp() override {
    if (!lacking.empty()) GTEST_SKIP() << lacking;
  }
};

double median_ms(Udp& udp, int probes) {
  std::vector<double> delays;
  for (int i = 0; i < probes; ++i) {
    udp.send(static_cast<std::uint32_t>(i), 32);
    delays.push_back(static_cast<double>(udp.arrival().one_way()) / 1e6);
  }
  std::sort(delays.begin(), delays.end());
  return delays[delays.size() / 2];
}

TEST_F(FabricOnHost, DelayIsAsAsked) {
  FabricBackend backend;
  backend.apply(pair(spec(0, Duration::milliseconds(20))));
  Udp udp(backend, "a", "b");
  const double delay = median_ms(udp, 30);
  std::printf("one-way delay asked 20 ms, median of 30: %.3f ms\n", delay);
  EXPECT_GE(delay, 20);
  EXPECT_LE(delay, 25);
  EXPECT_EQ(backend.lateness().size(), backend.current().links.size());
}

TEST_F(FabricOnHost, GoodputIsTheFramingsShareOfTheRate) {
  for (const bool offload : {true, false}) {
    FabricOptions options;
    options.offload = offload;
    FabricBackend backend(options);
    backend.apply(pair(spec(20, Duration::milliseconds(5))));
    const std::vector<Sample> samples = test::tcp(backend, "a", "b", 6'000'000, 20);
    ASSERT_GT(samples.size(), 10u);
    // From a third on, when the queue is full and stays so.
    const Sample& first = samples[samples.size() / 3];
    const Sample& last = samples.back();
    const double mbit = 8e3 * static_cast<double>(last.bytes - first.bytes) /
                        static_cast<double>(last.ns - first.ns);
    const double ideal = 20.0 * 1448 / 1538;
    std::printf("TCP goodput at 20 Mbit/s, offload %s: %.3f Mbit/s, ideal %.3f\n",
                offload ? "on" : "off", mbit, ideal);
    EXPECT_LE(mbit, ideal * 1.02);
    EXPECT_GE(mbit, ideal * 0.8);
  }
}

TEST_F(FabricOnHost, LossIsDrawnForEachSegmentAndTcpRecovers) {
  LinkSpec lossy = spec(0, Duration::milliseconds(1));
  lossy.loss = {0.01};
  FabricBackend backend;
  backend.apply(pair(lossy, 3));
  const std::vector<Sample> samples = test::tcp(backend, "a", "b", 5'000'000, 60);
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples.back().bytes, 5'000'000);
  for (const LinkCounters& counters : backend.counters()) {
    if (counters.link != "a->switch") continue;
    const auto sent = static_cast<double>(counters.packets + counters.loss_drops);
    const double share = static_cast<double>(counters.loss_drops) / sent;
    std::printf("loss asked 1 %%, %.3f %% of %.0f segments\n", 100 * share, sent);
    // Five standard deviations.
    EXPECT_NEAR(share, 0.01, 5 * std::sqrt(0.01 * 0.99 / sent));
  }
}

TEST_F(FabricOnHost, CorruptPacketsDoNotReachPrograms) {
  LinkSpec bad = spec(0, Duration::milliseconds(1));
  bad.corrupt = {1};
  FabricBackend backend;
  backend.apply(pair(bad));
  Udp udp(backend, "a", "b");
  for (std::uint32_t i = 0; i < 20; ++i) udp.send(i, 200);
  // A flipped bit that no checksum covers may let one through, e.g. in a TTL that is not checked.
  EXPECT_LE(udp.receive_all(200'000'000).size(), 2u);
}

TEST_F(FabricOnHost, AChangeTakesEffectWithoutLosingPackets) {
  FabricBackend backend;
  backend.apply(pair(spec(0, Duration::milliseconds(2))));
  Udp udp(backend, "a", "b");
  const double before = median_ms(udp, 11);
  const std::vector<LinkChange> changes{{"a->switch", spec(0, Duration::milliseconds(30))}};
  const ChangeTimes times = backend.change(changes, FabricLoop::now());
  EXPECT_GE(times.actual, times.planned);
  const double after = median_ms(udp, 11);
  std::printf("delay %.3f ms, after the change %.3f ms\n", before, after);
  EXPECT_NEAR(after - before, 28, 6);
  EXPECT_EQ(backend.current().link("a->switch").spec.delay, Duration::milliseconds(30));
}

TEST_F(FabricOnHost, TheSameVerifyMeasuresIt) {
  FabricBackend backend;
  const LinkSpec link = spec(50, Duration::milliseconds(10));
  backend.apply(plan(star({{"a", link, link}, {"b", link, link}}), 1));
  VerifyOptions generous;
  generous.delay_tolerance = Duration::milliseconds(5);
  generous.rate_tolerance = 0.2;
  // A measurement lasts milliseconds, and a busy host spoils many; a wrong link fails all of them.
  std::map<std::string, bool> ok;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const auto verdicts = verify(backend, generous);
    ASSERT_EQ(verdicts.size(), 4u);
    if (attempt == 0) std::fputs(to_text(verdicts).c_str(), stdout);
    for (const LinkVerdict& verdict : verdicts) ok[verdict.link] |= verdict.ok();
  }
  for (const auto& [name, good] : ok) EXPECT_TRUE(good) << name;
}

TEST_F(FabricOnHost, NothingIsLeftBehind) {
  FabricBackend backend;
  for (int i = 0; i < 5; ++i) {
    backend.apply(pair(spec(10, Duration::milliseconds(1))));
    backend.remove();
    backend.remove();
  }
  EXPECT_THROW(backend.current(), std::logic_error);
}

}  // namespace
}  // namespace orrery::netshape

int main(int argc, char** argv) {
  using namespace orrery;
  testing::InitGoogleTest(&argc, argv);
  try {
    netshape::enter_user_namespace();
    const netshape::InNamespace inside = netshape::InNamespace::make();
    netshape::TapDevice("probe", true);
  } catch (const Error& error) {
    netshape::lacking = error.what();
  }
  return RUN_ALL_TESTS();
}
