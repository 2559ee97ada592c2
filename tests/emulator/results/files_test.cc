// The files of a run's directory: golden texts, cut streams, hostile names, repeatability.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/results/csv.hh"
#include "emulator/results/directory.hh"
#include "emulator/results/events.hh"
#include "emulator/results/trace.hh"
#include "proto/record_stream.hh"
#include "tests/emulator/results/records.hh"

namespace orrery::results {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "orrery-results-XXXXXX";
    if (!::mkdtemp(name.data())) throw_errno("make " + name);
    path_ = name;
  }
  ~Folder() override { std::filesystem::remove_all(path_); }

  void write_records(const std::vector<wire::Record>& records, const std::string& folder = "") {
    std::filesystem::create_directories(path_ + folder);
    RecordFileWriter writer(path_ + folder + "/records.bin");
    for (const wire::Record& record : records) writer.write(record);
  }
  std::string file(const std::string& name) { return read_file(path_ + "/" + name); }

  std::string path_;
};

TEST(StepsCsv, IsAsWritten) {
  EXPECT_EQ(steps_csv(make_log(small_run())),
            "t,node,step,phase,loss,samples,lr\n"
            "0.002500000,a,1,step,2.25,64,\n"
            "0.002500001,b,1,step,2.75,64,0.1\n"
            "0.005000000,a,2,step,,64,\n"
            "0.005000000,b,2,step,1.5,64,0.05\n");
}

TEST(LinksCsv, IsAsWritten) {
  EXPECT_EQ(links_csv(make_log(small_run())),
            "link,from,to,property,asked,applied,measured,verdict,packets,bytes,dropped\n"
            "a->switch,a,switch,delay,0.02,0.02,0.0200031,ok,10,15140,1\n"
            "a->switch,a,switch,rate,1e+08,1e+08,,not measured,10,15140,1\n"
            "switch->a,switch,a,delay,0.01,0.01,0.012,off by 20 %,12,18000,0\n");
}

TEST(LinksCsv, ALinkThatWasNotCheckedIsNeverOk) {
  EXPECT_EQ(links_csv(make_log({counters(5, "x->y", 1, 2, 3)})),
            "link,from,to,property,asked,applied,measured,verdict,packets,bytes,dropped\n"
            "x->y,x,y,,,,,not checked,1,2,3\n");
}

TEST(EvaluationsCsv, IsAsWritten) {
  EXPECT_EQ(evaluations_csv(make_log(small_run())),
            "t,step,accuracy,loss\n"
            "0.000000000,0,0.1,2.4\n"
            "0.006000000,2,0.625,1.25\n");
}

TEST(TrafficCsv, IsAsWritten) {
  EXPECT_EQ(traffic_csv(make_log(small_run())),
            "node,peer,kind,messages,bytes\n"
            "a,b,gradient,2,8192\n"
            "b,a,gradient,2,8192\n"
            "b,a,scalar,4,32\n");
}

TEST(EventsJsonl, EachLineIsAnObjectInTheOrderOfTime) {
  const std::string text = events_jsonl(make_log(small_run()));
  std::istringstream lines(text);
  double last = -1;
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_GE(json.at("t").get<double>(), last);
    last = json.at("t").get<double>();
    EXPECT_TRUE(json.at("type").is_string());
  }
  EXPECT_EQ(count, 11);
  EXPECT_THAT(text, HasSubstr("{\"t\":0.003000000,\"type\":\"timeline\",\"event\":\"slow b\","
                              "\"action\":\"slow\",\"edge\":\"begin\",\"target\":\"b\","
                              "\"what\":\"b computes 2 times slower\",\"planned\":0.003,"
                              "\"actual\":0.003}\n"));
  EXPECT_THAT(text, HasSubstr("\"measured\":null,\"verdict\":\"not measured\""));
}

TEST(EventsJsonl, ACutRunSaysSo) {
  auto records = small_run();
  records.resize(10);
  EXPECT_THAT(events_jsonl(make_log(records)),
              HasSubstr("\"type\":\"incomplete\",\"reason\":\"the run did not end\""));
}

TEST(TraceJson, IsTheChromeFormat) {
  const auto trace = nlohmann::json::parse(trace_json(make_log(small_run())));
  std::map<std::string, int> phases;
  std::map<std::string, int> names;
  for (const auto& e : trace.at("traceEvents")) {
    ++phases[e.at("ph").get<std::string>()];
    ++names[e.at("name").get<std::string>()];
    EXPECT_TRUE(e.at("pid").is_number_integer());
  }
  EXPECT_EQ(phases["X"], 3);
  EXPECT_EQ(phases["i"], 4);
  EXPECT_EQ(phases["C"], 3 + 4);  // one loss is not a number
  EXPECT_EQ(names["slow b"], 1);
  EXPECT_EQ(names["slow b ends"], 1);
  EXPECT_THAT(trace_json(make_log(small_run())), HasSubstr("\"ts\":1000.000,\"dur\":1500.000"));
}

TEST(Files, AreTheSameHoweverNodesInterleave) {
  auto records = small_run();
  const std::string steps = steps_csv(make_log(records));
  const std::string events = events_jsonl(make_log(records));
  const std::string trace = trace_json(make_log(records));
  // Node 1's records before node 0's: each in its own order still.
  std::stable_sort(records.begin() + 4, records.end(), [](const auto& a, const auto& b) {
    const auto first = [](const wire::Record& r) {
      return (r.has_step() && r.step().node() == 1) || (r.has_span() && r.span().node() == 1) ||
             (r.has_node_state() && r.node_state().node() == 1);
    };
    return first(a) && !first(b);
  });
  EXPECT_EQ(steps_csv(make_log(records)), steps);
  EXPECT_EQ(events_jsonl(make_log(records)), events);
  EXPECT_EQ(trace_json(make_log(records)), trace);
}

TEST(Files, OfAnEmptyRunAreHeadersOnly) {
  const RunLog log = make_log({});
  EXPECT_EQ(steps_csv(log), "t,node,step,phase,loss,samples\n");
  EXPECT_EQ(evaluations_csv(log), "t,step,accuracy,loss\n");
  EXPECT_EQ(nlohmann::json::parse(trace_json(log)).at("traceEvents").size(), 2U);
  EXPECT_FALSE(log.complete());
}

TEST(Files, HostileNamesStayInTheirField) {
  const std::string evil = "a\",b\n</script><b>\x1b[31m\xff";
  const RunLog log =
      make_log({started(evil, evil, {evil}), step(1, 0, 1, evil, 1), span(0, 1, 0, "compute", evil),
                event(evil, evil, 0, 0, evil, "slow", false)});
  EXPECT_THAT(steps_csv(log), HasSubstr("\"a\"\",b\n</script>"));
  EXPECT_TRUE(nlohmann::json::accept(trace_json(log)));
  std::istringstream lines(events_jsonl(log));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line));
}

TEST_F(Folder, AStreamCutAnywhereIsReadUpToTheCut) {
  write_records(small_run());
  const std::string whole = file("records.bin");
  std::int64_t last = 0;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    write_file(path_ + "/records.bin", std::string_view(whole).substr(0, cut));
    const RunLog log = load(path_ + "/records.bin");
    EXPECT_GE(log.records, last);
    EXPECT_LE(log.records - last, 1);
    last = log.records;
    if (log.records < 23) {
      EXPECT_FALSE(log.complete()) << cut;
    }
  }
}

TEST_F(Folder, DamageInTheMiddleKeepsWhatCameBefore) {
  write_records(small_run());
  std::string bytes = file("records.bin");
  write_file(path_ + "/records.bin", bytes.substr(0, 60) + std::string(200, '\xf3'));
  RunLog log;
  try {
    log = load(path_ + "/records.bin");
  } catch (const Error&) {
    FAIL() << "the first record is whole";
  }
  EXPECT_GE(log.records, 1);
  EXPECT_FALSE(log.complete());
}

TEST_F(Folder, AMissingStreamIsAnEmptyRun) { EXPECT_EQ(load(path_ + "/records.bin").records, 0); }

TEST_F(Folder, WritingTwiceGivesTheSameBytes) {
  write_records(small_run());
  RunDescription description;
  description.name = "sgd";
  description.strategy = "sgd_allreduce";
  description.engine = "exact";
  description.cost = "model";
  description.seed = 7;
  description.host_seconds = 1.5;
  description.experiment = "orrery: 1\n";
  description.versions = {{"orrery", "0.1.0"}};
  write_description(path_, description);
  EXPECT_EQ(write_results(path_).verdict, Grade::degraded);

  const std::vector<std::string> names{"run.json",        "steps.csv",    "links.csv",
                                       "traffic.csv",     "events.jsonl", "trace.json",
                                       "evaluations.csv", "report.html"};
  std::map<std::string, std::string> first;
  for (const std::string& name : names) first[name] = file(name);
  write_results(path_);
  for (const std::string& name : names) EXPECT_EQ(file(name), first[name]) << name;

  const auto json = nlohmann::json::parse(first["run.json"]);
  EXPECT_EQ(json.at("verdict").at("grade"), "degraded");
  EXPECT_EQ(json.at("summary").at("accuracy"), 0.625);
  EXPECT_EQ(json.at("experiment"), "orrery: 1\n");
}

TEST_F(Folder, ASuiteHasItsComparison) {
  for (const std::string name : {"one", "two"}) {
    write_records(small_run(), "/" + name);
    RunDescription description;
    description.name = name;
    write_description(path_ + "/" + name, description);
  }
  EXPECT_EQ(write_suite(path_, "both", {path_ + "/one", path_ + "/two"}).size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(file("summary.json")).at("runs").at(1).at("name"), "two");
  EXPECT_THAT(file("report.html"), HasSubstr("<title>both"));
  EXPECT_THAT(file("one/report.html"), HasSubstr("<title>one"));
}

TEST_F(Folder, ARunJsonThatIsNotOneSaysWhere) {
  write_file(path_ + "/run.json", "{\"seed\": \"seven\"}");
  try {
    read_description(path_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("\"seed\" is string"));
  }
  write_file(path_ + "/run.json", "{");
  EXPECT_THROW(read_description(path_), Error);
}

TEST_F(Folder, ADescriptionReadsBack) {
  RunDescription description;
  description.name = "n";
  description.seed = 18446744073709551615ull;
  description.command_line = {"orrery", "run"};
  description.speeds = {{"a", 0.25}};
  description.profile_spread = 1.03;
  write_description(path_, description);
  const RunDescription back = read_description(path_);
  EXPECT_EQ(back.seed, description.seed);
  EXPECT_EQ(back.command_line, description.command_line);
  EXPECT_EQ(back.speeds, description.speeds);
  EXPECT_EQ(back.profile_spread, description.profile_spread);
  EXPECT_EQ(back.watchdog_share, std::nullopt);
}

}  // namespace
}  // namespace orrery::results
