#include <gtest/gtest.h>

#include "emulator/config/document.hh"
#include "emulator/config/load.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

constexpr const char* experiment = R"(orrery: 1
name: base
cluster:
  nodes: [{name: "n[0-2]", device: ideal}]
  network: {link: {delay: 1ms}}
workload: {model: mlp, layers: [784, 20, 15, 10]}
runs:
  - {name: one, strategy: nd_cao, stop: {evaluations: 10}}
  - {name: two, strategy: sgd_allreduce, options: {batch: 8}, stop: {steps: 5}}
)";

Experiment with(const std::vector<std::string>& overrides) {
  return load_text("base.yaml", experiment, fake_catalog(), overrides).experiment;
}

std::string error_with(const std::vector<std::string>& overrides) {
  try {
    with(overrides);
  } catch (const InvalidFile& invalid) {
    return invalid.what();
  }
  return "accepted";
}

TEST(Override, ReplacesThroughMapsAndListsByNameAndIndex) {
  EXPECT_EQ(with({"seed=7"}).seed, 7u);
  EXPECT_EQ(with({"seed=7", "seed=8"}).seed, 8u);
  EXPECT_EQ(with({"runs.two.options.batch=16"}).runs[1].options.integer("batch"), 16);
  EXPECT_EQ(with({"runs.1.options.batch=16"}).runs[1].options.integer("batch"), 16);
  EXPECT_EQ(with({"cluster.network.link.delay=30ms"}).cluster.network.access[2].up.delay,
            Duration::milliseconds(30));
}

TEST(Override, MakesWhatIsNotThere) {
  EXPECT_EQ(with({"runs.one.options.step=0.5"}).runs[0].options.number("step"), 0.5);
  EXPECT_EQ(with({"limits.stall=1s"}).limits.stall, Duration::seconds(1));
}

TEST(Override, TakesAnyYaml) {
  const auto runs = with({"runs=[{name: x, strategy: nd_cao, stop: {time: 5s}}]"}).runs;
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].stop.time, Duration::seconds(5));
  EXPECT_EQ(with({"description=\"a = b\""}).description, "a = b");
}

TEST(Override, ErrorsPointIntoTheItem) {
  EXPECT_EQ(error_with({"cluster.network.link.delay=30"}),
            "--set:28: '30' has no unit; write one of ns, us, ms, s, min, h, as in 20ms\n"
            "  cluster.network.link.delay=30\n"
            "                             ^\n");
  EXPECT_EQ(error_with({"cluster.netwrk.link.delay=30ms"}),
            "--set:9: unknown key 'netwrk' in cluster; did you mean 'network'?\n"
            "  cluster.netwrk.link.delay=30ms\n"
            "          ^\n");
  EXPECT_EQ(error_with({"runs.three.seed=1"}),
            "--set:6: the list has no item 'three'; use an index below 2, or one of one, two\n"
            "  runs.three.seed=1\n"
            "       ^\n");
  EXPECT_EQ(error_with({"runs.9.seed=1"}),
            "--set:6: the list has no item '9'; use an index below 2, or one of one, two\n"
            "  runs.9.seed=1\n"
            "       ^\n");
  EXPECT_EQ(error_with({"name.x=1"}),
            "--set:6: the path goes on after 'base', which is a single value; end it there\n"
            "  name.x=1\n"
            "       ^\n");
}

TEST(Override, WhatIsNoAssignmentIsRefused) {
  for (const char* item : {"seed", "=3", "", "a..b=1", ".a=1", "seed=[1", "seed='"})
    EXPECT_TRUE(error_with({item}).starts_with("--set:")) << item << "\n" << error_with({item});
  EXPECT_EQ(error_with({"seed="}),
            "--set:1: 'seed' has no value; write a whole number from 0 to "
            "2^64 - 1\n  seed=\n  ^\n");
}

TEST(Override, ErrorsOfSeveralItemsAndOfTheFileComeTogether) {
  const std::string text = error_with({"seed=x", "sede=1", "runs.one.strategy=nd_coa"});
  EXPECT_NE(text.find("'x' is not a whole number"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'seed'?"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean nd_cao?"), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::config
