#include "emulator/config/experiment.hh"

#include <gtest/gtest.h>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/config/load.hh"
#include "emulator/config/network.hh"
#include "emulator/plan/run_plan.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

constexpr const char* full = R"(
orrery: 1
name: full
description: "with \"quotes\", ümlauts and a : colon"
seed: 18446744073709551615
cluster:
  cost: model
  devices:
    own: {flops: 4GFLOP/s, memory_bandwidth: 3GB/s, memory: 4GiB, message_overhead: 50us, speed: 0.5}
    pi: {profile: raspberry-pi-4, memory: 2GiB}
  nodes:
    - {name: "board[0-1]", device: own}
    - {name: hub, device: pi, speed: 2}
    - {name: "x[08-09]", device: laptop}
  network:
    topology: tree
    arity: 2
    trunk: {delay: 1ms, rate: 1Gbit/s, loss_model: {four_state: {p13: 1%, p31: 30%, p14: 0.1%}}}
    link: {delay: 10ms, jitter: 1ms, distribution: normal, rate: 100Mbit/s, loss: 0.1%, queue: 2bdp}
    links:
      - {node: "board[0-1]", both: {delay: 20ms}, up: {rate: 5Mbit/s, layer: l2}}
      - {node: board1, down: {rate: unlimited, queue: 64KiB}}
workload:
  model: mlp
  layers: [196, 24, 16, 16, 16, 10]
  activation: relu
  pool: 2
  objective_images: 500
  train_images: 1000
timeline:
  - {name: late, at: 30s, slow: {node: hub, factor: 2.5, for: 10s}}
  - {name: early, at: 1.5s, link: {node: [hub, "board[0-1]"], direction: up, set: {rate: 1Mbit/s, loss: 1%}}}
  - {name: nap, at: 2s, pause: {node: x08, for: 123456789ns}}
  - {name: die, at: 3s, kill: {node: x09}}
  - {name: back, at: 4s, restart: {node: x09}}
runs:
  - name: cao
    strategy: nd_cao
    options: {mode: async, step: 0.1, caching: false}
    stop: {evaluations: 100, loss: 0.5}
    seeds: 2
    placement: [{node: hub, layers: 2}, {node: board0, layers: 3}]
  - {name: sgd, strategy: sgd_allreduce, stop: {epochs: 1.5, time: 1h}, evaluate: {every: 7}, seed: 3}
  - name: ps
    strategy: parameter_server
    options: {server: hub, patience: 3us, chunk: 1MiB, cap: 3.5Mbit/s, drop: 12.5%}
    stop: {steps: 10}
evaluate: {every: 50}
record: {spans: first:20}
limits: {watchdog: 5s, stall: 1min}
)";

Experiment parse(const std::string& text) {
  return load_text("test.yaml", text, fake_catalog()).experiment;
}

TEST(Experiment, HoldsWhatTheFileSays) {
  const Experiment e = parse(full);
  EXPECT_EQ(e.name, "full");
  EXPECT_EQ(e.seed, UINT64_MAX);
  EXPECT_EQ(e.cluster.cost, Cost::model);

  ASSERT_EQ(e.cluster.devices.size(), 3u);  // `laptop` was built in, not declared
  EXPECT_EQ(e.cluster.devices[0].flops.per_second, 4e9);
  EXPECT_EQ(e.cluster.devices[0].message_overhead, Duration::microseconds(50));
  EXPECT_EQ(e.cluster.devices[1].profile, "raspberry-pi-4");
  EXPECT_EQ(e.cluster.devices[1].memory, Bytes::mib(2048));
  EXPECT_EQ(e.cluster.devices[2].name, "laptop");

  ASSERT_EQ(e.cluster.nodes.size(), 5u);
  EXPECT_EQ(e.cluster.nodes[1].name, "board1");
  EXPECT_EQ(e.cluster.nodes[3].name, "x08");
  EXPECT_EQ(e.cluster.speed_of(e.cluster.nodes[0]), 0.5);
  EXPECT_EQ(e.cluster.speed_of(e.cluster.nodes[2]), 2);

  const auto& access = e.cluster.network.access;
  ASSERT_EQ(access.size(), 5u);
  EXPECT_EQ(access[0].up.rate, BitRate::mbit(5));
  EXPECT_EQ(access[0].up.layer, Layer::l2);
  EXPECT_EQ(access[0].up.delay, Duration::milliseconds(20));
  EXPECT_EQ(access[0].down.rate, BitRate::mbit(100));
  EXPECT_EQ(access[1].down.rate, std::nullopt);
  EXPECT_EQ(access[1].down.queue, Queue(Bytes::kib(64)));
  EXPECT_EQ(access[1].down.delay, Duration::milliseconds(20));
  EXPECT_EQ(access[2].up.delay, Duration::milliseconds(10));
  EXPECT_EQ(access[2].up.queue, Queue(BdpMultiple{2}));
  EXPECT_EQ(access[2].up.loss.value, 0.001);
  EXPECT_EQ(access[2].up.distribution, Distribution::normal);

  EXPECT_EQ(e.workload.layer_count(), 5);
  EXPECT_EQ(e.workload.activation, Activation::relu);
  EXPECT_EQ(e.workload.train_images, 1000);
  EXPECT_EQ(e.workload.test_images, std::nullopt);

  ASSERT_EQ(e.timeline.size(), 5u);
  EXPECT_EQ(std::get<Slow>(e.timeline[0].action).factor, 2.5);
  EXPECT_EQ(e.timeline[0].lasts, Duration::seconds(10));
  EXPECT_EQ(e.timeline[1].nodes, (std::vector<std::string>{"hub", "board0", "board1"}));
  EXPECT_EQ(std::get<LinkChange>(e.timeline[1].action).direction, Direction::up);
  EXPECT_EQ(e.timeline[1].lasts, std::nullopt);
  EXPECT_EQ(e.timeline[1].at.ns, 1'500'000'000);

  ASSERT_EQ(e.runs.size(), 4u);
  EXPECT_EQ(e.runs[0].name, "cao-seed18446744073709551615");
  EXPECT_EQ(e.runs[1].seed, 0u);  // counts on from 2^64 - 1
  EXPECT_EQ(e.runs[1].group, "cao");
  EXPECT_EQ(e.runs[0].options.text("mode"), "async");
  EXPECT_EQ(e.runs[0].options.integer("staleness"), 4);
  EXPECT_FALSE(e.runs[0].options.boolean("caching"));
  EXPECT_EQ(e.runs[0].stop.evaluations, 100);
  EXPECT_EQ(e.runs[0].stop.loss, 0.5);
  EXPECT_EQ(e.runs[0].evaluate_every, 50);
  ASSERT_EQ(e.runs[0].placement.size(), 2u);
  EXPECT_EQ(e.runs[0].placement[1], (Stage{"board0", 3}));
  EXPECT_EQ(e.runs[2].seed, 3u);
  EXPECT_EQ(e.runs[2].evaluate_every, 7);
  EXPECT_EQ(e.runs[2].stop.epochs, 1.5);
  EXPECT_EQ(e.runs[2].stop.time, Duration::seconds(3600));
  EXPECT_EQ(e.runs[3].options.duration("patience"), Duration::microseconds(3));
  EXPECT_EQ(e.runs[3].options.bytes("chunk"), Bytes::mib(1));
  EXPECT_EQ(e.runs[3].options.integer("cap"), 3'500'000);
  EXPECT_EQ(e.runs[3].options.number("drop"), 0.125);

  EXPECT_EQ(e.record.first_spans, 20);
  EXPECT_EQ(e.limits.watchdog, Duration::seconds(5));
}

TEST(Experiment, DefaultsAreThoseOfTheTypes) {
  const Experiment e = parse(R"(orrery: 1
name: least
cluster: {nodes: [{name: a, device: ideal}], network: {}}
workload: {model: lenet5}
runs: [{name: r, strategy: sgd_allreduce, stop: {steps: 1}}]
)");
  EXPECT_EQ(e.seed, 1u);
  EXPECT_EQ(e.cluster.cost, Cost::profile);
  EXPECT_EQ(e.cluster.network.access, (std::vector<Access>{{"a", Link{}, Link{}}}));
  EXPECT_EQ(e.workload.layer_count(), 5);
  EXPECT_EQ(e.evaluate_every, 100);
  EXPECT_EQ(e.limits, Limits{});
  EXPECT_EQ(e.record, Record{});
  EXPECT_EQ(e.runs[0].seed, 1u);
  EXPECT_EQ(e.runs[0].group, "r");
}

TEST(Experiment, WrittenAndReadAgainItIsTheSame) {
  const std::string configs = std::string(ORRERY_SOURCE_DIR) + "/configs/";
  const auto check = [](const std::string& text, const StrategyCatalog& catalog) {
    const Experiment e = load_text("test.yaml", text, catalog).experiment;
    const std::string written = to_yaml(e, catalog);
    const Experiment again = load_text("test.yaml", written, catalog).experiment;
    EXPECT_EQ(again, e) << written;
    EXPECT_EQ(to_yaml(again, catalog), written);
  };
  check(full, fake_catalog());
  for (const char* name : {"quickstart", "ring", "faults", "minimal", "nd_cao", "parameter_server",
                           "two_sites", "fat_tree", "wires"})
    check(read_file(configs + name + ".yaml"), emulator::strategy_catalog());
}

TEST(Experiment, EveryLinkMayBeSpeltOut) {
  const Experiment e = parse(R"(
orrery: 1
name: wired
cluster:
  nodes: [{name: "n[0-2]", device: ideal}]
  network:
    link: {delay: 1ms}
    switches: ["s[0-1]"]
    wires:
      - {between: ["n[0-1]", s0], forth: {rate: 1Mbit/s}}
      - {between: [n2, s1]}
      - {between: [s0, s1], both: {delay: 5ms}, back: {loss: 1%}}
      - {between: [s0, n1], forth: {delay: 9ms}}
workload: {model: mlp, layers: [784, 10]}
timeline:
  - {name: cut, at: 1s, link: {between: [s1, s0], direction: up, set: {loss: 100%}}}
  - {name: far, at: 2s, link: {node: n1, direction: down, set: {delay: 2s}}}
runs: [{name: r, strategy: sgd_allreduce, stop: {steps: 1}}]
)");
  const Network& network = e.cluster.network;
  EXPECT_EQ(network.switches, (std::vector<std::string>{"s0", "s1"}));
  ASSERT_EQ(network.wires.size(), 4u);
  EXPECT_EQ(network.wires[1].a, "n1");
  EXPECT_EQ(network.wires[1].forth.rate, BitRate::mbit(1));
  // The entry that names it from the other end: forth is from its own first end.
  EXPECT_EQ(network.wires[1].back.delay, Duration::milliseconds(9));
  EXPECT_EQ(network.wires[3].forth.delay, Duration::milliseconds(5));
  EXPECT_EQ(network.wires[3].back.loss.value, 0.01);

  const netshape::Topology topology = topology_of(network);
  EXPECT_EQ(netshape::problems(topology), std::vector<std::string>{});
  EXPECT_EQ(topology.links.size(), 4u);
  EXPECT_EQ(link_between(network, {"s1", "s0"}).loss.value, 0.01);
  const auto touches = [&](std::size_t i) {
    return touched(topology, e.timeline[i], std::get<LinkChange>(e.timeline[i].action));
  };
  EXPECT_EQ(touches(0), (std::vector<Ends>{{"s1", "s0"}}));
  EXPECT_EQ(touches(1), (std::vector<Ends>{{"s0", "n1"}}));
}

TEST(Experiment, AwkwardFiguresSurviveWriting) {
  Experiment e = parse(full);
  e.cluster.network.access[0].up.delay = {123'456'789'012'345};
  e.cluster.network.access[0].up.rate = BitRate{123'456'789'123};
  e.cluster.network.access[0].up.loss = {1.0 / 3.0};
  e.cluster.network.access[0].up.queue = Bytes{1'234'567'891};
  e.cluster.network.access[0].down.queue = BdpMultiple{1.0 / 3.0};
  e.cluster.devices[0].flops = {1e9 / 3.0};
  e.cluster.devices[0].speed = 1.0 / 3.0;
  e.timeline[0].at = {1};
  e.runs[0].stop.loss = -1e-300;
  EXPECT_EQ(parse(to_yaml(e, fake_catalog())), e) << to_yaml(e, fake_catalog());
}

TEST(Experiment, SelectsRunsByNameAndByGroup) {
  const Experiment e = parse(full);
  ASSERT_EQ(e.select("sgd").runs.size(), 1u);
  EXPECT_EQ(e.select("sgd").runs[0].name, "sgd");
  EXPECT_EQ(e.select("cao").runs.size(), 2u);
  EXPECT_EQ(e.select("cao-seed0").runs.size(), 1u);
  try {
    e.select("sdg");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "no run is named 'sdg'; there are cao-seed18446744073709551615, "
                 "cao-seed0, sgd, ps");
  }
}

TEST(Experiment, LeavesOneEventOut) {
  const Experiment e = parse(full);
  const Experiment rest = e.without("nap");
  ASSERT_EQ(rest.timeline.size(), 4u);
  EXPECT_EQ(rest.timeline[2].name, "die");
  try {
    e.without("siesta");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "no event of the timeline is named 'siesta'; there are late, early, "
                 "nap, die, back");
  }
}

TEST(Experiment, EventsThatTouchOnlyAtTheirEndsAreFine) {
  const std::string base = std::string(full);
  const std::string from = "  - {name: late";
  const auto with = [&](const std::string& events) {
    std::string text = base;
    text.insert(text.find(from), events);
    return text;
  };
  EXPECT_NO_THROW(
      parse(with("  - {name: a, at: 20s, slow: {node: hub, factor: 2, for: 10s}}\n"
                 "  - {name: b, at: 40s, slow: {node: hub, factor: 2}}\n")));
  EXPECT_NO_THROW(parse(with("  - {name: a, at: 1s, slow: {node: board0, factor: 2}}\n")));
  EXPECT_NO_THROW(
      parse(with("  - {name: a, at: 1s, link: {node: hub, direction: down, set: {rate: "
                 "1Mbit/s}}}\n")));
  EXPECT_NO_THROW(parse(with("  - {name: a, at: 1s, link: {node: hub, set: {queue: 1ms}}}\n")));
  EXPECT_THROW(parse(with("  - {name: a, at: 1s, link: {node: hub, set: {loss: 2%}}}\n")),
               InvalidFile);
}

TEST(Experiment, APauseWithoutAnEndIsAWarning) {
  std::string text = full;
  const std::string end = ", for: 123456789ns";
  text.erase(text.find(end), end.size());
  const Loaded loaded = load_text("test.yaml", text, fake_catalog());
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_TRUE(loaded.warnings[0].starts_with("test.yaml:33:32: warning: the pause 'nap' lasts"))
      << loaded.warnings[0];
}

TEST(Names, RangesExpand) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_names("a"), Names{"a"});
  EXPECT_EQ(expand_names("a[2-4]"), (Names{"a2", "a3", "a4"}));
  EXPECT_EQ(expand_names("a[0,2,5-6]b"), (Names{"a0b", "a2b", "a5b", "a6b"}));
  EXPECT_EQ(expand_names("pi[08-10]"), (Names{"pi08", "pi09", "pi10"}));
  EXPECT_EQ(expand_names("n[0-4095]").size(), 4096u);
  for (const char* text : {"", "a[", "a]", "a[]", "a[1", "a[2-1]", "a[x]", "a[1-]", "a[-1]",
                           "a[0-4096]", "a b", "9a", "a.b", "a[1][2]", "a[1,]", "a[9999999999]"})
    EXPECT_THROW(expand_names(text), ValueError) << text;
}

}  // namespace
}  // namespace orrery::config
