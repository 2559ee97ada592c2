#include "netshape/plan.hh"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

LinkSpec link(double mbit, std::int64_t delay_us) {
  LinkSpec spec;
  spec.delay = Duration::microseconds(delay_us);
  spec.rate = BitRate::mbit(mbit);
  return spec;
}

Plan two_nodes(const LinkSpec& spec) {
  return plan(star({{"a", spec, spec}, {"b", spec, spec}}), 1);
}

TEST(Plan, FiguresOfAnOrdinaryLink) {
  // 100 Mbit/s, four links of 10 ms there and back: 40 ms × 12.5 MB/s = 500,000 B is one BDP; 50 ms
  // of queue are 625,000 B = 413 frames of 1514 B. A frame is 1538 B on the wire: 123,040 ns.
  const Plan made = two_nodes(link(100, 10'000));
  const LinkPlan& up = made.link("a->switch");
  EXPECT_EQ(up.queue_bytes.value, 625'000);
  EXPECT_EQ(up.queue_packets.value, 413);
  EXPECT_EQ(up.frame_time_ns.value, 123'040);
  EXPECT_EQ(up.tcp_goodput.value, 94'148'244);  // 1448 / 1538 of the rate
  EXPECT_EQ(up.path.latency_ns, 10'000'000);
  EXPECT_EQ(up.path.rate, 0u);
  ASSERT_TRUE(up.line);
  EXPECT_EQ(up.line->rate, 12'500'000u);
  EXPECT_EQ(up.line->packet_overhead, 24);
  EXPECT_EQ(up.line->limit, 414u);
  // 1.5 × 10 ms × 100 Mbit/s / 12000 bit = 125; 2 × 413; 1000 to spare.
  EXPECT_EQ(up.path.limit, 1951u);
  const PathPlan& path = made.path("a", "b");
  EXPECT_EQ(path.links, (std::vector<std::string>{"a->switch", "switch->b"}));
  EXPECT_EQ(path.one_way, Duration::milliseconds(20));
  EXPECT_EQ(path.round_trip, Duration::milliseconds(40));
  EXPECT_EQ(path.bdp.value, 500'000);
  EXPECT_EQ(path.socket_buffer.value, 4 << 20);
}

TEST(Plan, L2RateCountsWhatLinuxCounts) {
  LinkSpec spec = link(100, 1000);
  spec.layer = Layer::l2;
  const Plan made = two_nodes(spec);
  EXPECT_EQ(made.link("a->switch").line->packet_overhead, 0);
  EXPECT_EQ(made.link("a->switch").tcp_goodput.value, 95'640'686);  // 1448 / 1514
}

TEST(Plan, QueueAsAsked) {
  LinkSpec spec = link(100, 10'000);
  spec.queue = Bytes{15'140};
  EXPECT_EQ(two_nodes(spec).link("a->switch").queue_packets.value, 10);
  spec.queue = Duration::milliseconds(10);  // 125,000 B
  EXPECT_EQ(two_nodes(spec).link("a->switch").queue_packets.value, 83);
  spec.queue = BdpMultiple{2};  // 1,000,000 B
  EXPECT_EQ(two_nodes(spec).link("a->switch").queue_packets.value, 661);
  spec.queue = Bytes{1};
  EXPECT_EQ(two_nodes(spec).link("a->switch").queue_packets.value, 1);
}

TEST(Plan, DefaultQueueIsBounded) {
  EXPECT_EQ(two_nodes(link(10'000, 10)).link("a->switch").queue_bytes.value, 4 << 20);
  // 1 Gbit/s × 400 ms = 50 MB: one BDP, though above the bound.
  EXPECT_EQ(two_nodes(link(1000, 100'000)).link("a->switch").queue_bytes.value, 50'000'000);
}

TEST(Plan, SuperPacketsLastAtMostFiftyMicroseconds) {
  EXPECT_EQ(two_nodes(link(100, 10)).vertex("a").gso_segments.value, 1);   // 0.4 frames in 50 us
  EXPECT_EQ(two_nodes(link(1000, 10)).vertex("a").gso_segments.value, 4);  // 6250 B
  EXPECT_EQ(two_nodes(link(10'000, 10)).vertex("a").gso_segments.value, 41);
  EXPECT_EQ(two_nodes(link(100'000, 10)).vertex("a").gso_segments.value, 43);  // 64 KiB
}

TEST(Plan, TheSlowestLinkOnAnyPathDecidesTheSuperPacket) {
  const LinkSpec fast = link(10'000, 10);
  const LinkSpec slow = link(100, 10);
  const Plan made = plan(star({{"a", fast, fast}, {"b", fast, slow}, {"c", fast, fast}}), 1);
  EXPECT_EQ(made.vertex("a").gso_segments.value, 1);   // may send to b
  EXPECT_EQ(made.vertex("b").gso_segments.value, 41);  // never uses its own way down
}

TEST(Plan, LossMakesEveryPacketCount) {
  LinkSpec lossy = link(10'000, 10);
  lossy.loss = {0.001};
  EXPECT_EQ(two_nodes(lossy).vertex("a").gso_segments.value, 1);
}

TEST(Plan, TheTimelineCounts) {
  const LinkSpec fast = link(10'000, 10);
  const Topology topology = star({{"a", fast, fast}, {"b", fast, fast}});
  const std::vector<LinkChange> timeline{{"switch->b", link(100, 500'000)}};
  const Plan made = plan(topology, 1, timeline);
  EXPECT_EQ(made.vertex("a").gso_segments.value, 1);
  // 10 Gbit/s × (500 ms and three times 10 us) × 2: more than the most.
  EXPECT_EQ(made.path("a", "b").socket_buffer.value, 512 << 20);
}

TEST(Plan, SuperPacketsFoldTheOverheadIntoTheRate) {
  const LinkPlan up = two_nodes(link(10'000, 10)).link("a->switch");
  EXPECT_EQ(up.line->packet_overhead, 0);
  EXPECT_EQ(up.line->rate, 1'230'494'148u);  // 1.25 GB/s × 1514 / 1538
  EXPECT_EQ(up.queue_packets.value, 200);
}

TEST(Plan, OrderIsKeptUnlessAskedOtherwise) {
  LinkSpec spec = link(100, 10'000);
  spec.jitter = Duration::milliseconds(1);
  EXPECT_GT(two_nodes(spec).link("a->switch").path.rate, 0u);
  spec.keep_order = false;
  EXPECT_EQ(two_nodes(spec).link("a->switch").path.rate, 0u);
}

TEST(Plan, ADuplicatingLinkHasOneQueue) {
  LinkSpec spec = link(100, 10'000);
  spec.duplicate = {0.01};
  const LinkPlan up = two_nodes(spec).link("a->switch");
  EXPECT_FALSE(up.line);
  EXPECT_EQ(up.path.rate, 12'500'000u);
  EXPECT_EQ(up.path.packet_overhead, 24);
  EXPECT_EQ(up.path.limit, 125u + 413u);
}

TEST(Plan, SeedsAreTheLinksOwn) {
  const Plan one = two_nodes(link(100, 10));
  const Plan same = two_nodes(link(200, 20));
  const Plan other = plan(one.topology, 2);
  EXPECT_EQ(one.link("a->switch").seed, same.link("a->switch").seed);
  EXPECT_NE(one.link("a->switch").seed, one.link("switch->a").seed);
  EXPECT_NE(one.link("a->switch").seed, other.link("a->switch").seed);
}

TEST(Plan, ShapesNeverAtASendingNode) {
  const Plan made = two_nodes(link(100, 10));
  EXPECT_EQ(made.link("a->switch").place, Place::ingress);
  EXPECT_EQ(made.link("switch->a").place, Place::egress);
}

TEST(Plan, RoutesThroughAChainAndATree) {
  Topology topology;
  topology.nodes = {"a", "b", "c"};
  topology.switches = {"s", "t"};
  topology.links = {{"a", "s", {}, {}}, {"s", "t", {}, {}}, {"t", "b", {}, {}}, {"b", "c", {}, {}}};
  const Plan made = plan(topology, 1);
  EXPECT_EQ(made.path("a", "c").links, (std::vector<std::string>{"a->s", "s->t", "t->b", "b->c"}));
  ASSERT_EQ(made.vertex("t").routes.size(), 3u);
  EXPECT_EQ(made.vertex("t").routes[0].via, "s");
  EXPECT_EQ(made.vertex("t").routes[2].via, "b");
}

TEST(Plan, AddressesAreDistinctAndSpeakable) {
  std::vector<StarNode> nodes;
  for (int i = 0; i < 300; ++i) nodes.push_back({"n" + std::to_string(i), {}, {}});
  const Topology topology = star(nodes);
  std::set<std::string> seen;
  const Plan made = plan(topology, 1);
  for (const VertexPlan& vertex : made.vertices) {
    EXPECT_TRUE(seen.insert(vertex.address).second) << vertex.address;
    EXPECT_FALSE(vertex.address.ends_with(".0") || vertex.address.ends_with(".255"));
  }
  EXPECT_EQ(made.vertices[254].address, "10.0.1.1");
}

TEST(Plan, AChangeTouchesItsLinkOnly) {
  const Plan before = two_nodes(link(100, 10'000));
  const std::vector<LinkChange> changes{{"a->switch", link(50, 40'000)}};
  const Plan after = changed(before, changes);
  EXPECT_EQ(after.link("a->switch").line->rate, 6'250'000u);
  EXPECT_EQ(after.link("switch->a").line->limit, before.link("switch->a").line->limit);
  EXPECT_EQ(after.path("a", "b").one_way, Duration::milliseconds(50));
  EXPECT_EQ(after.vertex("a").socket_buffer.value, before.vertex("a").socket_buffer.value);
}

TEST(Plan, RefusesAChangeOfNoLink) {
  const Plan before = two_nodes(link(100, 10'000));
  const std::vector<LinkChange> changes{{"a->b", link(50, 1)}};
  try {
    changed(before, changes);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "change of 'a->b': there is no such link; write \"from->to\" of two joined ends");
  }
}

TEST(Plan, CrossingTimeAddsEachLine) {
  // A 60 B packet is 98 B on the wire: 7840 ns at 100 Mbit/s, twice, and 20 ms.
  const Plan made = two_nodes(link(100, 10'000));
  EXPECT_EQ(crossing_time(made, made.path("a", "b"), 60), Duration{20'015'680});
}

std::string stored(const std::string& name) {
  std::ifstream file(std::string(NETSHAPE_TEST_DATA) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Plan example() {
  LinkSpec dsl = link(10, 15'000);
  dsl.jitter = Duration::milliseconds(1);
  dsl.loss = {0.001};
  dsl.queue = Duration::milliseconds(100);
  return plan(star({{"edge", dsl, link(50, 15'000)},
                    {"server", link(1000, 100), link(1000, 100)},
                    {"lab", LinkSpec{}, LinkSpec{}}}),
              42);
}

// To renew: NETSHAPE_WRITE=1 in the environment, then read the difference.
void expect_stored(const std::string& name, const std::string& text) {
  if (std::getenv("NETSHAPE_WRITE") != nullptr)
    std::ofstream(std::string(NETSHAPE_TEST_DATA) + "/" + name) << text;
  EXPECT_EQ(text, stored(name));
}

TEST(Plan, TextIsAsStored) { expect_stored("plan.txt", to_text(example())); }
TEST(Plan, JsonIsAsStored) { expect_stored("plan.json", to_json(example())); }

}  // namespace
}  // namespace orrery::netshape
