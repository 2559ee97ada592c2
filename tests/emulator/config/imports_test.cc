// Networks and traces from other files, and what is wrong with them.

#include "emulator/config/imports.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/fd.hh"
#include "emulator/config/load.hh"
#include "emulator/config/network.hh"
#include "emulator/config/network_file.hh"
#include "netshape/profiles.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

using testing::HasSubstr;

class Imports : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/orrery-imports-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  Experiment read(const std::string& network, const std::string& nodes = "a, b, c",
                  const std::string& rest = "") {
    return load_network_text(
               folder_ + "/net.yaml",
               "netshape: 1\nnodes: [" + nodes + "]\nnetwork: " + network + "\n" + rest,
               fake_catalog())
        .experiment;
  }
  // What a reader sees.
  std::string errors(const std::string& network, const std::string& rest = "") {
    try {
      read(network, "a, b, c", rest);
    } catch (const InvalidFile& error) {
      return error.what();
    }
    return "nothing wrong";
  }
  // The steps of an event on a's link down.
  std::vector<LinkStep> steps(const std::string& event, const std::string& lasts = "") {
    const Experiment e = read("{link: {delay: 1ms}}", "a, b",
                              "timeline:\n  - {name: e, at: 1s, link: {node: a, direction: down, " +
                                  event + lasts + "}}\n");
    return std::get<LinkChange>(e.timeline.at(0).action).steps;
  }
  std::string folder_;
};

TEST_F(Imports, AGraphInGml) {
  file("g.gml",
       "# a comment\nCreator \"x\"\ngraph [\n  directed 0\n"
       "  node [ id 1 label \"a\" ]\n  node [ id 2 label \"b\" graphics [ x 1.5 ] ]\n"
       "  node [ id 5 label \"c\" Latitude 0 Longitude 0 ]\n"
       "  node [ id 7 label \"The hub\" Latitude 0.0 Longitude 90.0 ]\n"
       "  edge [ source 1 target 7 latency \"10 ms\" bandwidth \"1 Gbit\" packet_loss 0.01 ]\n"
       "  edge [ source 7 target 2 delay \"3ms\" LinkSpeedRaw 2.5E9 ]\n"
       "  edge [ source 5 target 7 ]\n  edge [ source 7 target 5 ]\n]\n");
  const Network network =
      read("{import: g.gml, link: {jitter: 1ms, rate: 1Mbit/s}}").cluster.network;
  EXPECT_EQ(network.switches, std::vector<std::string>{"The_hub"});
  ASSERT_EQ(network.wires.size(), 3u);
  EXPECT_EQ(network.wires[0].forth.delay, Duration::milliseconds(10));
  EXPECT_EQ(network.wires[0].back.rate, BitRate::mbit(1000));
  EXPECT_EQ(network.wires[0].forth.loss.value, 0.01);
  EXPECT_EQ(network.wires[1].back.rate, BitRate::mbit(2500));
  // A quarter of the way round the Earth at 5 us a kilometre; of the rest, what `link` says.
  EXPECT_NEAR(network.wires[2].forth.delay.in_milliseconds(), 10007.5 * 5e-3, 0.1);
  EXPECT_EQ(network.wires[2].forth.rate, BitRate::mbit(1));
}

TEST_F(Imports, ADirectedGraphHasEachDirectionByItself) {
  file("g.gml",
       "graph [ directed 1 node [ id 0 label \"a\" ] node [ id 1 label \"b\" ]\n"
       "edge [ source 0 target 1 delay \"5ms\" ] edge [ source 1 target 0 delay \"9ms\" ] ]");
  const Network network = read("{import: g.gml}", "a, b").cluster.network;
  EXPECT_EQ(link_between(network, {"a", "b"}).delay, Duration::milliseconds(5));
  EXPECT_EQ(link_between(network, {"b", "a"}).delay, Duration::milliseconds(9));
}

TEST_F(Imports, WhatIsWrongWithAGraphIsShownWhereItIs) {
  const auto wrong = [&](const std::string& text) {
    file("g.gml", text);
    return errors("{import: g.gml}");
  };
  EXPECT_THAT(wrong(""), HasSubstr("g.gml:1:1: there is no graph here"));
  EXPECT_THAT(wrong("graph [ node [ id 1"), HasSubstr("g.gml:1:14: this list does not end"));
  EXPECT_THAT(wrong("graph [ ] ]"), HasSubstr("g.gml:1:11: a ']' that closes nothing"));
  EXPECT_THAT(wrong("graph [\n  node [ label \"a\n"),
              HasSubstr("g.gml:2:16: this text does not end"));
  EXPECT_THAT(wrong("graph [ directed ]"), HasSubstr("'directed' has no value"));
  EXPECT_THAT(wrong("graph [ 5 5 ]"), HasSubstr("a key is expected here"));
  EXPECT_THAT(wrong("graph [ node [ label \"a\" ] ]"), HasSubstr("has no id"));
  EXPECT_THAT(wrong("graph [ node [ id 1 ] node [ id 1 ] ]"), HasSubstr("node 1 is here twice"));
  EXPECT_THAT(wrong("graph [ node [ id 1 ] edge [ source 1 target 9 ] ]"),
              HasSubstr("target 9 is no node's id"));
  EXPECT_THAT(wrong("graph [ node [ id 1 label \"a\" ] node [ id 2 label \"b\" ]\n"
                    "edge [ source 1 target 2 delay \"fast\" ] ]"),
              HasSubstr("g.gml:2:26: 'fast' is"));
  EXPECT_THAT(wrong("graph [ node [ id 1 label \"a\" ] node [ id 2 label \"b\" ]\n"
                    "edge [ source 1 target 2 ] ]"),
              HasSubstr("no path joins a and c"));
  EXPECT_THAT(wrong(std::string(500, '[')), HasSubstr("a key is expected"));
  std::string deep = "graph ";
  for (int i = 0; i < 100; ++i) deep += "[ a ";
  EXPECT_THAT(wrong(deep), HasSubstr("lie too deep"));
}

TEST_F(Imports, FilesThatAreNone) {
  EXPECT_THAT(errors("{import: none.gml}"), HasSubstr("none.gml"));
  EXPECT_THAT(errors("{import: net.json}"), HasSubstr("name a .gml graph or a .csv matrix"));
  std::filesystem::create_directory(folder_ + "/folder.gml");
  EXPECT_THAT(errors("{import: folder.gml}"), HasSubstr("folder.gml"));
  EXPECT_THAT(errors("{import: g.gml, topology: ring}"), HasSubstr("stands beside 'import'"));
}

TEST_F(Imports, AMatrixOfDelays) {
  file("m.csv", "# ms\r\n, a ,b,\"c\"\r\na,0,10,20ms\r\n\r\nb,11,0,30\r\nc,21,31.5,0\r\n");
  const Network network = read("{import: m.csv, link: {rate: 5Mbit/s}}").cluster.network;
  ASSERT_EQ(network.wires.size(), 3u);
  EXPECT_EQ(link_between(network, {"a", "b"}).delay, Duration::milliseconds(10));
  EXPECT_EQ(link_between(network, {"b", "a"}).delay, Duration::milliseconds(11));
  EXPECT_EQ(link_between(network, {"a", "c"}).delay, Duration::milliseconds(20));
  EXPECT_EQ(link_between(network, {"c", "b"}).delay, Duration::microseconds(31'500));
  EXPECT_EQ(link_between(network, {"c", "b"}).rate, BitRate::mbit(5));

  file("m.csv", ",a,b\na,0,1\nb,1,0\n");
  EXPECT_THAT(errors("{import: m.csv}"), HasSubstr("the matrix has no column 'c'"));
  file("m.csv", ",a,b,c\na,0,1\nb,1,0,1\nc,1,far,0\n");
  const std::string both = errors("{import: m.csv}");
  EXPECT_THAT(both, HasSubstr("m.csv:2:1: the row 'a' ends before the column 'c'"));
  EXPECT_THAT(both, HasSubstr("m.csv:4:5: 'far' is"));
}

TEST_F(Imports, ATraceInCsv) {
  file("t.csv", "time [s],rate [Mbit/s],loss\n0,10,\n1.5,,1%\n2,20,0%\n");
  const auto all = steps("trace: {csv: t.csv}");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].at, Duration::milliseconds(1500));
  EXPECT_EQ(**all[1].set.rate, BitRate::mbit(10));  // as it was
  EXPECT_EQ(all[1].set.loss->value, 0.01);
  EXPECT_EQ(**all[2].set.rate, BitRate::mbit(20));
  // The last row holds for half a second, as the one before.
  const auto twice = steps("trace: {csv: t.csv, repeat: true}", ", for: 5s");
  ASSERT_EQ(twice.size(), 6u);
  EXPECT_EQ(twice[3].at, Duration::milliseconds(2500));

  const auto wrong = [&](const std::string& text) {
    file("t.csv", text);
    return errors("{link: {delay: 1ms}}",
                  "timeline:\n  - {name: e, at: 1s, link: {node: a, trace: {csv: t.csv}}}\n");
  };
  EXPECT_THAT(wrong(""), HasSubstr("the trace has no rows"));
  EXPECT_THAT(wrong("rate\n5\n"), HasSubstr("no column is called time"));
  EXPECT_THAT(wrong("time,speed\n0s,5\n"), HasSubstr("t.csv:1:6: 'speed' is no column"));
  EXPECT_THAT(wrong("time [s],rate\n0,5\n"), HasSubstr("t.csv:2:3: '5' "));
  EXPECT_THAT(wrong("time [s],loss\n1,0%\n1,1%\n"),
              HasSubstr("t.csv:3:1: the times do not ascend"));
  EXPECT_THAT(wrong("time [s],loss\nsoon,0%\n"), HasSubstr("t.csv:2:1: "));
}

TEST_F(Imports, ATraceOfMahimahis) {
  // Ten packets in the first tenth of a second, none in the second, one in the third.
  file("m", "5\n10\n10\n20\n30\n40\n50\n60\n70\n80\n210\n");
  const auto all = steps("trace: {mahimahi: m, bin: 100ms}");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ((**all[0].set.rate).bits_per_second, 10 * 8 * 1514 * 10);
  EXPECT_EQ(all[0].set.layer, Layer::l2);
  EXPECT_EQ((**all[1].set.rate).bits_per_second, 8 * 1514 * 10);
  const auto wrong = [&](const std::string& text) {
    file("m", text);
    return errors("{link: {delay: 1ms}}",
                  "timeline:\n  - {name: e, at: 1s, link: {node: a, trace: {mahimahi: m}}}\n");
  };
  EXPECT_THAT(wrong(""), HasSubstr("the trace is empty"));
  EXPECT_THAT(wrong("1\n-2\n"), HasSubstr("m:2:1: '-2' is no whole number"));
  EXPECT_THAT(wrong("3\n2\n"), HasSubstr("the times descend"));
  EXPECT_THAT(wrong("999999999999\n"), HasSubstr("write a longer bin"));
}

TEST_F(Imports, ALinkThatFlaps) {
  const auto all = steps("flap: {period: 2s, down: 500ms}", ", for: 5s");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].set.loss->value, 1);
  EXPECT_EQ(all[1].at, Duration::milliseconds(500));
  EXPECT_TRUE(all[1].set.empty());
  EXPECT_EQ(all[4].at, Duration::seconds(4));
  const auto wrong = [&](const std::string& rest) {
    return errors("{link: {delay: 1ms}}",
                  "timeline:\n  - {name: e, at: 1s, link: {node: a, " + rest + "}}\n");
  };
  EXPECT_THAT(wrong("flap: {period: 2s, down: 500ms}"), HasSubstr("write `for` beside `flap`"));
  EXPECT_THAT(wrong("flap: {period: 2s, down: 3s}, for: 9s"), HasSubstr("write down between"));
  EXPECT_THAT(wrong("flap: {period: 1us, down: 500ns}, for: 9h"), HasSubstr("flaps too often"));
  EXPECT_THAT(wrong("flap: {period: 2s, down: 1s}, set: {loss: 1%}, for: 9s"), HasSubstr("'flap'"));
  EXPECT_THAT(wrong("steps: [{at: 2s, set: {loss: 1%}}, {at: 1s, set: {}}]"),
              HasSubstr("do not ascend"));
}

TEST_F(Imports, WhatWasImportedIsWrittenOut) {
  file("m.csv", ",a,b,c\na,0,1,2\nb,1,0,3\nc,1,5,0\n");
  const Experiment e =
      read("{import: m.csv}", "a, b, c",
           "timeline:\n  - {name: e, at: 1s, link: {node: a, flap: {period: 2s, down: 1s}, for: "
           "5s}}\n");
  const std::string text = to_yaml(e, fake_catalog());
  EXPECT_EQ(load_text("elsewhere", text, fake_catalog()).experiment, e) << text;
}

TEST(LinkProfiles, AreSoundAndHaveASource) {
  std::set<std::string_view> names;
  for (const netshape::LinkProfile& profile : netshape::link_profiles()) {
    EXPECT_TRUE(names.insert(profile.name).second) << profile.name;
    EXPECT_EQ(netshape::problems(profile.up), std::vector<std::string>{}) << profile.name;
    EXPECT_EQ(netshape::problems(profile.down), std::vector<std::string>{}) << profile.name;
    EXPECT_GT(profile.source.size(), 30u);
  }
  EXPECT_EQ(netshape::find_link_profile("lan"), nullptr);
}

// docs/links.md holds the table between two markers; with ORRERY_UPDATE set it is written.
TEST(LinkProfiles, AreThoseOfThePage) {
  std::string table = "| profile | what | up | down | source |\n|---|---|---|---|---|\n";
  for (const netshape::LinkProfile& profile : netshape::link_profiles())
    table += "| `" + std::string(profile.name) + "` | " + std::string(profile.what) + " | " +
             netshape::to_string(profile.up) + " | " + netshape::to_string(profile.down) + " | " +
             std::string(profile.source) + " |\n";
  const std::string path = ORRERY_SOURCE_DIR "/docs/links.md";
  std::string page = read_file(path);
  const std::string begin = "<!-- profiles: made by a test -->\n";
  const std::string end = "<!-- end of profiles -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::size_t first = from + begin.size();
  if (std::getenv("ORRERY_UPDATE")) {
    page.replace(first, to - first, table);
    write_file(path, page);
  }
  EXPECT_EQ(read_file(path).substr(first, table.size()), table) << "set ORRERY_UPDATE=1 once";
}

TEST_F(Imports, AProfileIsAsItsDirectionsAre) {
  const Network network =
      read("{link: {profile: lan-1g}, links: [{node: a, both: {profile: dsl, delay: 7ms}}]}")
          .cluster.network;
  EXPECT_EQ(network.access[0].up.rate, BitRate::mbit(1));
  EXPECT_EQ(network.access[0].down.rate, BitRate::mbit(12));
  EXPECT_EQ(network.access[0].down.delay, Duration::milliseconds(7));
  EXPECT_EQ(network.access[1].down.rate, BitRate::mbit(1000));
  EXPECT_THAT(errors("{link: {profile: dls}}"), HasSubstr("dsl"));
}

}  // namespace
}  // namespace orrery::config
