// What the kernel holds after apply() and change(). Run inside the time-travel kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/stat.h>

#include "base/error.hh"
#include "netshape/kernel_backend.hh"
#include "netshape/namespace.hh"
#include "netshape/netlink.hh"
#include "netshape/verify.hh"
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

Topology two(const LinkSpec& up, const LinkSpec& down = {}) {
  return star({{"a", up, {}}, {"b", {}, down}});
}

TEST(KernelBackend, ReadsBackWhatWasAsked) {
  LinkSpec rich = link(100, 20'000);
  rich.jitter = Duration::milliseconds(2);
  rich.loss = {0.01};
  rich.corrupt = {0.001};
  rich.reorder = {0.02};
  KernelBackend backend(now);
  backend.apply(plan(two(rich, link(10'000, 5)), 7));  // throws if the kernel holds anything else
  int checked = 0;
  for (const Applied& one : backend.applied()) {
    EXPECT_EQ(one.asked, one.applied) << one.link << " " << one.field;
    checked += one.link == "a->switch";
  }
  EXPECT_GE(checked, 10);
}

TEST(KernelBackend, AChangeTakesEffectAndKnowsItsInstant) {
  KernelBackend backend(now);
  backend.apply(plan(two(link(100, 10'000)), 1));
  Udp udp(backend, "a", "b");
  udp.send(0, 32);
  EXPECT_NEAR(static_cast<double>(udp.arrival().one_way()), 10.008e6, 20e3);
  const std::int64_t before = now_ns();
  const std::vector<LinkChange> changes{{"a->switch", link(10, 3'000)},
                                        {"switch->b", link(100, 1'000)}};
  const ChangeTimes times = backend.change(changes, Instant{123});
  EXPECT_EQ(times.planned.ns, 123);
  EXPECT_GE(times.actual.ns, before);
  EXPECT_LE(times.actual.ns, now_ns());
  udp.send(1, 32);
  // 98 B: 78.4 us at 10 Mbit/s, 7.84 us at 100.
  EXPECT_NEAR(static_cast<double>(udp.arrival().one_way()), 4.086e6, 20e3);
}

TEST(KernelBackend, EveryKindOfChangeAndBack) {
  LinkSpec jitter = link(100, 10'000);
  jitter.jitter = Duration::milliseconds(1);
  LinkSpec uniform = jitter;
  uniform.distribution = Distribution::uniform;
  LinkSpec unlimited;
  unlimited.delay = Duration::milliseconds(2);
  LinkSpec twice = link(100, 10'000);
  twice.duplicate = {0.5};
  LinkSpec cut = link(100, 10'000);
  cut.loss = {1};
  const std::vector<LinkSpec> all{link(100, 10'000), jitter, uniform, unlimited, twice, cut};
  for (const LinkSpec& first : all) {
    KernelBackend backend(now);
    backend.apply(plan(two(first), 1));
    for (const LinkSpec& second : all)
      for (const LinkSpec& next : {second, first}) {
        const std::vector<LinkChange> changes{{"a->switch", next}};
        ASSERT_NO_THROW(backend.change(changes, {}))
            << to_string(first) << " / " << to_string(second);
      }
  }
}

TEST(KernelBackend, ACutLinkCarriesNothingAndHeals) {
  KernelBackend backend(now);
  backend.apply(plan(two(link(100, 1'000)), 1));
  Udp udp(backend, "a", "b");
  LinkSpec cut = link(100, 1'000);
  cut.loss = {1};
  const std::vector<LinkChange> down{{"a->switch", cut}};
  const std::vector<LinkChange> up{{"a->switch", link(100, 1'000)}};
  backend.change(down, {});
  for (std::uint32_t i = 0; i < 20; ++i) udp.send(i, 32);
  EXPECT_FALSE(udp.receive(100'000'000));
  EXPECT_EQ(backend.counters()[0].loss_drops, 20);
  backend.change(up, {});
  udp.send(99, 32);
  EXPECT_EQ(udp.arrival().number, 99u);
}

TEST(KernelBackend, AChangeThatCannotBeIsUndone) {
  KernelBackend backend(now);
  backend.apply(plan(two(link(100, 10'000), link(100, 10'000)), 1));
  const std::vector<LinkChange> wrong{{"a->switch", link(50, 1'000)}, {"a->b", link(50, 1'000)}};
  EXPECT_THROW(backend.change(wrong, {}), ValueError);
  Udp udp(backend, "a", "b");
  udp.send(0, 32);
  EXPECT_NEAR(static_cast<double>(udp.arrival().one_way()), 20.016e6, 20e3);
  EXPECT_EQ(backend.current().link("a->switch").spec, link(100, 10'000));
}

TEST(KernelBackend, ABatchThatTheKernelRefusesInPartIsUndone) {
  KernelBackend backend(now);
  backend.apply(plan(two(link(100, 10'000), link(100, 10'000)), 1));
  // Someone takes away the queue of the way down to b, the port of index 12.
  {
    const InNamespace inside(backend.node_namespace("switch"));
    NetlinkSocket socket;
    Message message("take away a queue", RTM_DELQDISC);
    tcmsg header{};
    header.tcm_ifindex = 12;
    header.tcm_parent = TC_H_ROOT;
    message.header(header);
    socket.request(std::move(message));
  }
  const std::vector<LinkChange> changes{{"a->switch", link(50, 1'000)},
                                        {"switch->b", link(50, 1'000)}};
  try {
    backend.change(changes, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("change netem of switch->b"));
  }
  Udp udp(backend, "a", "switch");
  udp.send(0, 32);
  EXPECT_NEAR(static_cast<double>(udp.arrival().one_way()), 10.008e6, 20e3);
}

TEST(KernelBackend, LeavesTheCallersNamespaceAlone) {
  const auto identity = [] {
    struct stat status {};
    fstat(InNamespace::current().get(), &status);
    return status.st_ino;
  };
  const auto before = identity();
  KernelBackend backend(now);
  backend.apply(plan(two(link(100, 1'000)), 1));
  verify(backend);
  EXPECT_EQ(identity(), before);
}

TEST(KernelBackend, RemoveTwiceAndApplyAgain) {
  KernelBackend backend(now);
  for (int i = 0; i < 2; ++i) {
    backend.apply(plan(two(link(100, 1'000)), 1));
    EXPECT_THROW(backend.apply(plan(two(link(100, 1'000)), 1)), std::logic_error);
    backend.remove();
    backend.remove();
  }
  EXPECT_THROW(backend.counters(), std::logic_error);
}

TEST(KernelBackend, AChainAndATreeCarryPackets) {
  Topology topology;
  topology.nodes = {"a", "b", "c"};
  topology.switches = {"s", "t"};
  const LinkSpec each = link(100, 1'000);
  topology.links = {{"a", "s", each, each},
                    {"s", "t", each, each},
                    {"t", "b", each, each},
                    {"b", "c", each, each}};
  KernelBackend backend(now);
  const Plan made = plan(topology, 1);
  backend.apply(made);
  for (const PathPlan& path : made.paths) {
    Udp udp(backend, path.from, path.to);
    udp.send(0, 32);
    const auto arrival = udp.receive(1'000'000'000);
    ASSERT_TRUE(arrival) << path.from << " to " << path.to;
    EXPECT_NEAR(static_cast<double>(arrival->one_way()),
                static_cast<double>(crossing_time(made, path, 60).ns), 20e3)
        << path.from << " to " << path.to;
  }
}

TEST(Verify, FindsEveryLinkAsAsked) {
  KernelBackend backend(now);
  const LinkSpec wan = link(50, 25'000);
  const LinkSpec lan = link(1000, 100);
  backend.apply(
      plan(star({{"a", wan, lan}, {"b", lan, wan}, {"c", lan, lan}, {"d", wan, wan}}), 1));
  for (const LinkVerdict& verdict : verify(backend)) {
    EXPECT_TRUE(verdict.ok()) << to_text({verdict});
    ASSERT_TRUE(verdict.rate.measured);
    EXPECT_NEAR(*verdict.rate.measured, verdict.rate.asked, 0.002 * verdict.rate.asked);
  }
}

// A backend whose plan says one thing and whose kernel holds another.
class Liar final : public Backend {
 public:
  Liar(Backend& truth, Plan claim) : truth_(truth), claim_(std::move(claim)) {}
  void apply(const Plan&) override {}
  ChangeTimes change(std::span<const LinkChange>, Instant) override { return {}; }
  std::vector<LinkCounters> counters() override { return {}; }
  std::vector<Applied> applied() const override { return {}; }
  const Plan& current() const override { return claim_; }
  void remove() override {}
  int node_namespace(const std::string& node) const override { return truth_.node_namespace(node); }

 private:
  Backend& truth_;
  Plan claim_;
};

TEST(Verify, SaysWhatIsOffAndWhatWasNotMeasured) {
  KernelBackend backend(now);
  LinkSpec cut = link(100, 1'000);
  cut.loss = {1};
  LinkSpec shaky = link(100, 10'000);
  shaky.jitter = Duration::milliseconds(3);
  backend.apply(plan(star({{"a", link(90, 12'000), cut}, {"b", LinkSpec{}, shaky}}), 1));
  Plan claim = plan(star({{"a", link(100, 10'000), cut}, {"b", LinkSpec{}, shaky}}), 1);
  const auto verdicts = verify(Liar(backend, claim));
  EXPECT_THAT(verdicts[0].delay.verdict, testing::StartsWith("off by +2"));
  EXPECT_THAT(verdicts[0].rate.verdict, testing::MatchesRegex("off by -(9.9|10.0).%"));
  EXPECT_EQ(verdicts[1].delay.verdict, "not measured: every probe was lost");
  EXPECT_THAT(verdicts[1].rate.verdict, testing::StartsWith("not measured: 0 of"));
  EXPECT_FALSE(verdicts[1].ok());
  EXPECT_EQ(verdicts[1].loss.verdict, "ok");
  EXPECT_EQ(verdicts[2].delay.verdict, "ok");
  EXPECT_EQ(verdicts[2].rate.verdict, "none asked");
  EXPECT_EQ(verdicts[3].rate.verdict, "not measured: the jitter would hide it");
  EXPECT_EQ(verdicts[3].jitter.verdict, "ok");
}

// Both directions of two links, each with another impairment, as it is and as it is claimed to be.
TEST(Verify, SeesWhatChanceDoes) {
  LinkSpec bursts = link(100, 5'000);
  bursts.burst_loss = gilbert({0.02}, 4);
  LinkSpec lossy = link(100, 5'000);
  lossy.loss = {0.01};
  LinkSpec shaky = link(100, 50'000);
  shaky.jitter = Duration::milliseconds(5);
  shaky.distribution = Distribution::pareto;
  LinkSpec twice = link(100, 5'000);
  twice.duplicate = {0.1};
  LinkSpec hasty = link(100, 20'000);
  hasty.reorder = {0.1};
  const auto topology = [&] {
    return star({{"a", bursts, lossy}, {"b", shaky, twice}, {"c", hasty, link(100, 5'000)}});
  };
  KernelBackend backend(now);
  backend.apply(plan(topology(), 1));
  for (const LinkVerdict& verdict : verify(backend))
    EXPECT_TRUE(verdict.ok() || verdict.rate.verdict.starts_with("not measured"))
        << to_text({verdict});

  bursts.burst_loss = gilbert({0.06}, 4);
  lossy.loss = {0.02};
  shaky.distribution = Distribution::normal;
  twice.duplicate = {0.05};
  hasty.reorder = {0.25};
  const auto claimed = verify(Liar(backend, plan(topology(), 1)));
  EXPECT_THAT(claimed[0].loss.verdict, testing::StartsWith("off by -"));
  EXPECT_THAT(claimed[1].loss.verdict, testing::StartsWith("off by -"));
  EXPECT_EQ(claimed[2].jitter.verdict, "off by its distribution: not normal");
  EXPECT_THAT(claimed[3].duplicate.verdict, testing::StartsWith("off by +"));
  EXPECT_THAT(claimed[4].reorder.verdict, testing::StartsWith("off by -"));
  EXPECT_TRUE(claimed[5].ok());
}

}  // namespace
}  // namespace orrery::netshape::test
