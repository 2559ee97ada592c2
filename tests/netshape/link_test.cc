#include "netshape/link.hh"

#include <gtest/gtest.h>

#include "netshape/topology.hh"

namespace orrery::netshape {
namespace {

LinkSpec jittery(Duration delay, Duration jitter, Distribution distribution) {
  LinkSpec spec;
  spec.delay = delay;
  spec.jitter = jitter;
  spec.distribution = distribution;
  return spec;
}

TEST(Link, PerfectWireIsWithoutProblems) { EXPECT_TRUE(problems(LinkSpec{}).empty()); }

TEST(Link, JitterMustStayAboveZeroDelay) {
  const auto ms = [](std::int64_t v) { return Duration::milliseconds(v); };
  EXPECT_TRUE(problems(jittery(ms(30), ms(10), Distribution::normal)).empty());
  EXPECT_TRUE(problems(jittery(ms(10), ms(10), Distribution::uniform)).empty());
  EXPECT_EQ(problems(jittery(ms(20), ms(10), Distribution::normal)),
            std::vector<std::string>{
                "jitter 10ms (normal) reaches below a delay of 20ms, and a packet cannot arrive "
                "early; write a jitter of at most 6666.666us, a third of the delay"});
  EXPECT_EQ(problems(jittery(ms(5), ms(6), Distribution::uniform)),
            std::vector<std::string>{
                "jitter 6ms (uniform) reaches below a delay of 5ms, and a packet cannot arrive "
                "early; write a jitter of at most 5ms, the delay itself"});
}

TEST(Link, EveryProblemIsReportedAtOnce) {
  LinkSpec spec;
  spec.delay = Duration{-1};
  spec.loss = {1.5};
  spec.reorder = {-0.1};
  spec.rate = BitRate{10};
  spec.queue = Bytes{0};
  EXPECT_EQ(problems(spec).size(), 5u);
}

TEST(Link, QueueNeedsARate) {
  LinkSpec spec;
  spec.queue = Duration::milliseconds(50);
  EXPECT_EQ(problems(spec),
            std::vector<std::string>{"queue 50ms has no rate to drain it; write a rate too, or "
                                     "leave the queue out"});
}

TEST(Link, IsWrittenOnOneLine) {
  LinkSpec spec =
      jittery(Duration::milliseconds(20), Duration::milliseconds(1), Distribution::normal);
  spec.rate = BitRate::mbit(100);
  spec.loss = {0.001};
  spec.queue = BdpMultiple{1.5};
  EXPECT_EQ(to_string(spec), "20ms ± 1ms normal, 100Mbit/s (wire), queue 1.5bdp, loss 0.1%");
}

TEST(Topology, NamesWhatIsWrong) {
  Topology topology;
  topology.nodes = {"a", "b", "a"};
  topology.switches = {"s"};
  topology.links = {{"a", "s", {}, {}}, {"a", "x", {}, {}}, {"b", "b", {}, {}}};
  const auto found = problems(topology);
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(found[0], "node 'a' appears twice; give each node and switch a name of its own");
  EXPECT_EQ(
      found[1],
      "link a - x ends at 'x', which is no node and no switch; name it under nodes or switches");
  EXPECT_EQ(found[2], "link b - b joins a vertex to itself; name two different ends");
}

TEST(Topology, NodesMustBeJoined) {
  Topology topology;
  topology.nodes = {"a", "b"};
  EXPECT_EQ(problems(topology),
            std::vector<std::string>{
                "no path joins a and b; add a link between them or to a common switch"});
}

TEST(Topology, ProblemsOfALinkCarryItsDirection) {
  LinkSpec bad;
  bad.loss = {2};
  const auto found = problems(star({{"a", {}, bad}, {"b", {}, {}}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("link switch->a: loss 2.000000 is not a probability"))
      << found[0];
}

}  // namespace
}  // namespace orrery::netshape
