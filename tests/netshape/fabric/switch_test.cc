#include "netshape/fabric/switch.hh"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/netshape/fabric/frames.hh"

namespace orrery::netshape {
namespace {

constexpr std::int64_t ms = 1'000'000;

struct Written {
  PortNumber port;
  Instant at;
  std::int64_t bytes;
  int segments;
};

// A device that writes down what it is given, by a clock that the test moves.
class Recorder : public PortWriter {
 public:
  void write(PortNumber port, const Piece& piece) override {
    all.push_back({port, now, piece.sizes().bytes(0, piece.count), piece.count});
  }
  Instant now;
  std::vector<Written> all;
};

FrameRef into(FramePool& pool, const test::TestFrame& frame) {
  FrameRef ref = pool.take(frame.bytes.size());
  std::copy(frame.bytes.begin(), frame.bytes.end(), ref->room().begin());
  ref->set_size(frame.bytes.size());
  ref->net = frame.net;
  return ref;
}

// Runs from release to release, as a perfect timer would.
void run(Switch& fabric, Recorder& recorder) {
  while (const auto next = fabric.next_release()) {
    recorder.now = *next;
    fabric.release_until(*next, recorder, 1 << 30);
  }
}

LinkSpec spec(double mbit, Duration delay) {
  LinkSpec link;
  link.delay = delay;
  if (mbit > 0) link.rate = BitRate::mbit(mbit);
  return link;
}

Plan two_switches() {
  const LinkSpec edge = spec(100, Duration::milliseconds(1));
  const LinkSpec trunk = spec(10, Duration::milliseconds(5));
  Topology topology;
  topology.nodes = {"a", "b", "c"};
  topology.switches = {"left", "right"};
  topology.links = {{"a", "left", edge, edge},
                    {"b", "left", edge, edge},
                    {"left", "right", trunk, trunk},
                    {"right", "c", edge, edge}};
  return plan(topology, 1);
}

std::string address(const Plan& plan, const std::string& vertex) {
  return plan.vertex(vertex).address;
}

PortNumber port_of(const Plan& plan, const std::string& link) {
  for (std::size_t i = 0; i < plan.links.size(); ++i)
    if (plan.links[i].name == link) return i;
  return plan.links.size();
}

TEST(Switch, APacketTakesThePlansCrossingTime) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  const auto frame = test::udp_frame(address(network, "a"), address(network, "c"), 1500);
  fabric.receive(port_of(network, "a->left"), into(fabric.pool(), frame), {0});
  run(fabric, recorder);
  ASSERT_EQ(recorder.all.size(), 1u);
  // c's device is the one through which it would answer.
  EXPECT_EQ(recorder.all[0].port, port_of(network, "c->right"));
  EXPECT_EQ(recorder.all[0].at.ns, crossing_time(network, network.path("a", "c"), 1500).ns);
}

TEST(Switch, ALateLoopDelaysOnlyTheLastHop) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  const auto frame = test::udp_frame(address(network, "a"), address(network, "c"), 1500);
  fabric.receive(port_of(network, "a->left"), into(fabric.pool(), frame), {0});
  // 0.5 ms late at every release: the times of later links are as if it had been punctual.
  while (const auto next = fabric.next_release()) {
    recorder.now = *next + Duration::microseconds(500);
    fabric.release_until(recorder.now, recorder, 1 << 30);
  }
  EXPECT_EQ(recorder.all.at(0).at.ns,
            crossing_time(network, network.path("a", "c"), 1500).ns + 500'000);
  for (const ReleaseLateness& late : fabric.lateness())
    if (late.releases > 0) {
      EXPECT_EQ(late.largest.ns, 500'000) << late.link;
    }
}

TEST(Switch, TwoFlowsShareTheLinkBetweenSwitches) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  for (int i = 0; i < 20; ++i)
    for (const char* from : {"a", "b"})
      fabric.receive(
          port_of(network, std::string(from) + "->left"),
          into(fabric.pool(), test::udp_frame(address(network, from), address(network, "c"), 1500)),
          {0});
  run(fabric, recorder);
  ASSERT_EQ(recorder.all.size(), 40u);
  // Forty frames one after another on the slow line; the first has crossed everything by itself.
  const std::int64_t frame_ns = network.link("left->right").frame_time_ns.value;
  EXPECT_EQ(recorder.all.back().at.ns - recorder.all.front().at.ns, 39 * frame_ns);
}

TEST(Switch, DropTailAtASharedQueueIsCountedThere) {
  LinkSpec edge = spec(0, {});
  LinkSpec trunk = spec(10, {});
  trunk.queue = Bytes{10 * 1514};
  Topology topology;
  topology.nodes = {"a", "b"};
  topology.switches = {"s"};
  topology.links = {{"a", "s", edge, edge}, {"s", "b", trunk, trunk}};
  const Plan network = plan(topology, 1);
  Switch fabric(network);
  Recorder recorder;
  for (int i = 0; i < 30; ++i)
    fabric.receive(
        port_of(network, "a->s"),
        into(fabric.pool(), test::udp_frame(address(network, "a"), address(network, "b"), 1500)),
        {0});
  run(fabric, recorder);
  EXPECT_EQ(recorder.all.size(), 11u);
  for (const LinkCounters& counters : fabric.counters({1000 * ms})) {
    EXPECT_EQ(counters.queue_drops, counters.link == "s->b" ? 19 : 0) << counters.link;
    if (counters.link == "a->s") {
      EXPECT_EQ(counters.packets, 30);
    }
    if (counters.link == "s->b") {
      EXPECT_EQ(counters.packets, 11);
      EXPECT_EQ(counters.l2_bytes, 11 * 1514);
      EXPECT_EQ(counters.wire_bytes, 11 * 1538);
      EXPECT_EQ(counters.queued + counters.in_flight, 0);
    }
  }
}

TEST(Switch, ASuperPacketArrivesWholeOnFastLinksAndInPartsOnSlowOnes) {
  const LinkSpec fast = spec(0, Duration::milliseconds(2));
  const Plan quick = plan(star({{"a", fast, fast}, {"b", fast, fast}}), 1);
  Switch fabric(quick);
  Recorder recorder;
  const auto frame = test::tcp_frame({.from = address(quick, "a"),
                                      .to = address(quick, "b"),
                                      .payload = 60000,
                                      .segment_payload = 1448});
  fabric.receive(port_of(quick, "a->switch"), into(fabric.pool(), frame), {0});
  run(fabric, recorder);
  ASSERT_EQ(recorder.all.size(), 1u);
  EXPECT_EQ(recorder.all[0].segments, 42);
  EXPECT_EQ(recorder.all[0].at.ns, 4 * ms);

  const LinkSpec slow = spec(10, Duration::milliseconds(2));
  const Plan tardy = plan(star({{"a", fast, fast}, {"b", slow, slow}}), 1);
  Switch second(tardy);
  Recorder parts;
  second.receive(port_of(tardy, "a->switch"), into(second.pool(), frame), {0});
  run(second, parts);
  EXPECT_EQ(parts.all.size(), 42u);
  std::int64_t bytes = 0;
  for (const Written& written : parts.all) bytes += written.bytes;
  EXPECT_EQ(bytes, 60000 + 42 * 66);
}

TEST(Switch, AnswersForASwitchItselfComeOutAtItsOwnPort) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  const auto ask = test::udp_frame(address(network, "a"), address(network, "left"), 60);
  fabric.receive(port_of(network, "a->left"), into(fabric.pool(), ask), {0});
  run(fabric, recorder);
  EXPECT_EQ(recorder.all.at(0).port, network.links.size());
  const auto answer = test::udp_frame(address(network, "left"), address(network, "a"), 60);
  fabric.receive(network.links.size(), into(fabric.pool(), answer), recorder.now);
  run(fabric, recorder);
  EXPECT_EQ(recorder.all.at(1).port, port_of(network, "a->left"));
}

TEST(Switch, UnknownAddressesAreRefused) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  const auto frame = test::udp_frame(address(network, "a"), "192.0.2.1", 60);
  fabric.receive(port_of(network, "a->left"), into(fabric.pool(), frame), {0});
  run(fabric, recorder);
  EXPECT_TRUE(recorder.all.empty());
  EXPECT_EQ(fabric.refused(), 1);
}

TEST(Switch, FramesAreUsedAgain) {
  const Plan network = two_switches();
  Switch fabric(network);
  Recorder recorder;
  const auto frame = test::udp_frame(address(network, "a"), address(network, "c"), 1500);
  for (int i = 0; i < 1000; ++i) {
    fabric.receive(port_of(network, "a->left"), into(fabric.pool(), frame), {i * 10 * ms});
    run(fabric, recorder);
  }
  EXPECT_EQ(recorder.all.size(), 1000u);
  EXPECT_EQ(fabric.pool().allocated(), 1u);
}

TEST(Switch, AChangeHoldsFromItsInstantOn) {
  const Plan before = two_switches();
  LinkSpec slower = before.link("left->right").spec;
  slower.delay = Duration::milliseconds(50);
  const std::vector<LinkChange> changes{{"left->right", slower}};
  const Plan after = changed(before, changes);
  Switch fabric(before);
  Recorder recorder;
  fabric.change(after, {"left->right"});
  const auto frame = test::udp_frame(address(before, "a"), address(before, "c"), 1500);
  fabric.receive(port_of(before, "a->left"), into(fabric.pool(), frame), {0});
  run(fabric, recorder);
  EXPECT_EQ(recorder.all.at(0).at.ns, crossing_time(after, after.path("a", "c"), 1500).ns);
}

TEST(Switch, ANodeInTheMiddleForwardsByItsOwnKernel) {
  const LinkSpec link = spec(0, Duration::milliseconds(1));
  Topology chain;
  chain.nodes = {"a", "b", "c"};
  chain.links = {{"a", "b", link, link}, {"b", "c", link, link}};
  const Plan network = plan(chain, 1);
  Switch fabric(network);
  Recorder recorder;
  const auto frame = test::udp_frame(address(network, "a"), address(network, "c"), 60);
  fabric.receive(port_of(network, "a->b"), into(fabric.pool(), frame), {0});
  run(fabric, recorder);
  EXPECT_EQ(recorder.all.at(0).port, port_of(network, "b->a"));
}

}  // namespace
}  // namespace orrery::netshape
