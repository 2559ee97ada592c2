// The command line without a run: exit codes, messages, what each command prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.hh"

namespace orrery::e2e {
namespace {

using testing::HasSubstr;

TEST(Cli, WrongUsageIsTwo) {
  EXPECT_EQ(orrery({}).status, 2);
  EXPECT_EQ(orrery({"fly"}).status, 2);
  EXPECT_EQ(orrery({"run"}).status, 2);
  EXPECT_EQ(orrery({"run", "no-such-file.yaml"}).status, 2);
  EXPECT_EQ(orrery({"list", "stars"}).status, 2);
  EXPECT_EQ(orrery({"report", "/"}).status, 2);
  EXPECT_EQ(orrery({"init", "nothing"}).status, 2);
  EXPECT_EQ(orrery({"run", config("minimal.yaml"), "--engine", "warp"}).status, 2);
  EXPECT_EQ(orrery({"run", config("minimal.yaml"), "--only", "nobody"}).status, 2);
  EXPECT_EQ(orrery({"run", config("minimal.yaml"), "--without", "nothing"}).status, 2);
}

TEST(Cli, VersionAndHelp) {
  EXPECT_THAT(orrery({"version"}).out, HasSubstr("orrery "));
  const Result help = orrery({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"run", "check", "plan", "profile", "doctor", "report", "rerun",
                              "init", "list", "clean", "schema", "version"})
    EXPECT_THAT(help.out, HasSubstr(command));
}

TEST(Cli, EveryConfigIsRight) {
  for (const auto& entry : std::filesystem::directory_iterator(ORRERY_CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    const Result result = orrery({"check", entry.path()});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("nothing wrong"));
  }
}

TEST(Cli, ErrorsHavePlacesAndNothingIsLaunched) {
  const Folder folder;
  std::ofstream(folder / "bad.yaml") << "orrery: 1\nname: bad\ncluster:\n  cost: modl\n";
  const Result result = orrery({"run", folder / "bad.yaml", "--out", folder / "out"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("bad.yaml:4:9:"));
  EXPECT_THAT(result.err, HasSubstr("^"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Cli, ModelMustFitTheImages) {
  const Result result = orrery({"check", config("minimal.yaml"), "--set", "workload.pool=1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("784"));
}

TEST(Cli, MoreStagesThanLayersIsRefused) {
  const Result result =
      orrery({"check", config("quickstart.yaml"), "--set", "workload.layers=[196, 16, 10]"});
  EXPECT_EQ(result.status, 2) << result.out;
}

TEST(Cli, PlanNamesEveryNodeAndLink) {
  const Result result = orrery({"plan", config("quickstart.yaml"), "--only", "nd_cao_sync"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* text :
       {"gate", "board0", "board1", "attic", "stage", "straggler", "guest memory"})
    EXPECT_THAT(result.out, HasSubstr(text));
}

TEST(Cli, SchemaIsJson) {
  const auto schema = nlohmann::json::parse(orrery({"schema"}).out);
  EXPECT_TRUE(schema.contains("$schema"));
}

TEST(Cli, InitWritesWhatChecksOut) {
  const Folder folder;
  EXPECT_EQ(orrery({"init", "quickstart", "--out", folder / "q.yaml"}).status, 0);
  EXPECT_EQ(orrery({"check", folder / "q.yaml"}).status, 0);
  EXPECT_EQ(orrery({"init", "quickstart", "--out", folder / "q.yaml"}).status, 2);  // it exists
}

TEST(Cli, ListsSayALineEach) {
  EXPECT_THAT(orrery({"list", "strategies"}).out, HasSubstr("nd_cao: "));
  EXPECT_THAT(orrery({"list", "devices"}).out, HasSubstr("raspberry-pi-4: "));
  EXPECT_THAT(orrery({"list", "models"}).out, HasSubstr("lenet5: "));
  EXPECT_THAT(orrery({"list", "datasets"}).out, HasSubstr("fashion-mnist: "));
}

TEST(Cli, AnOutputFolderInUseIsNotTouched) {
  const Folder folder;
  std::ofstream(folder / "mine") << "text";
  const Result result = orrery({"run", config("minimal.yaml"), "--out", folder.path()});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(read(folder / "mine"), "text");
}

TEST(Doctor, IsWellHere) {
  const Result result = orrery({"doctor"});
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("GFLOP/s"));
}

TEST(Doctor, NamesABadPlaceForMemory) {
  const Result result = run({"env", "TMPDIR=/no/such/folder", ORRERY_PROGRAM, "doctor"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.out, HasSubstr("/no/such/folder does not exist"));
}

TEST(Memory, TooLittleIsRefusedWithAFigure) {
  const Result result = orrery({"run", config("quickstart.yaml"), "--only", "nd_cao_sync", "--set",
                                "workload.layers=[196, 400000, 16, 16, 10]", "--quiet"});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("needs"));
  EXPECT_THAT(result.err, HasSubstr("available"));
}

}  // namespace
}  // namespace orrery::e2e
