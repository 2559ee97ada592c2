#include "emulator/results/report.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/emulator/results/records.hh"
#include "tests/emulator/results/sample_suite.hh"

namespace orrery::results {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::string report(const std::string& title, const std::vector<wire::Record>& records,
                   const RunDescription& description = {}) {
  const RunLog log = make_log(records);
  const RunView view{&description, &log};
  return report_html(title, {&view, 1});
}

nlohmann::json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const auto begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Report, HoldsWhatItDraws) {
  const auto data = data_of(report("small", small_run()));
  EXPECT_EQ(data.at("title"), "small");
  const auto& run = data.at("runs").at(0);
  EXPECT_EQ(run.at("summary").at("name"), "sgd");
  EXPECT_EQ(run.at("curves").at("accuracy").at("values"), nlohmann::json({0.1, 0.625}));
  EXPECT_EQ(run.at("timeline").size(), 1U);
  EXPECT_EQ(run.at("timeline").at(0).at("end"), 0.004);
  EXPECT_EQ(run.at("spans").at("rows").size(), 3U);
  EXPECT_EQ(run.at("links").size(), 2U);
  EXPECT_EQ(run.at("traffic").size(), 3U);
}

TEST(Report, AsksNothingOfAnyNetwork) {
  const std::string page = report("small", small_run());
  EXPECT_FALSE(
      std::regex_search(page, std::regex("https?://|//[a-z]+\\.|url\\(|@import|\\bfetch\\(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
}

TEST(Report, HostileNamesAreHarmless) {
  const std::string evil = "</script><b>\"'&\xff<!--{{data}}";
  RunDescription description;
  description.name = evil;
  description.experiment = evil;
  description.versions = {{evil, evil}};
  const std::string page =
      report(evil,
             {started(evil, evil, {evil}), event(evil, evil, 0, 0, evil, "slow", false),
              check(evil, evil, 1, 1, 1, evil), span(0, 5, 0, evil, evil), ended(9, false, evil)},
             description);
  EXPECT_EQ(count(page, "</script>"), 2);
  EXPECT_EQ(count(page, "<b>"), 0);
  EXPECT_EQ(count(page, "<!--"), 0);
  const auto data = data_of(page);
  EXPECT_EQ(data.at("runs").at(0).at("summary").at("name"),
            "</script><b>\"'&\xef\xbf\xbd<!--{{data}}");
}

TEST(Report, OfNothingIsAPageStill) {
  EXPECT_EQ(data_of(report_html("none", {})).at("runs").size(), 0U);
  const auto data = data_of(report("empty", {}));
  EXPECT_EQ(data.at("runs").at(0).at("verdict").at("grade"), "invalid");
  EXPECT_EQ(data.at("runs").at(0).at("complete"), false);
}

TEST(Report, StaysModestInSize) {
  std::vector<wire::Record> records{started("r", "s", {"a"})};
  for (int i = 0; i < 50'000; ++i) {
    records.push_back(step(i * 1000, 0, i, "evaluation", 1.0 / (i + 1)));
    records.push_back(span(i * 1000, i * 1000 + 900, 0, "compute", "forward"));
  }
  records.push_back(ended(50'000'000));
  const std::string page = report("long", records);
  EXPECT_LT(page.size(), 600'000U);
  const auto data = data_of(page);
  EXPECT_LE(data.at("runs").at(0).at("curves").at("own_loss").at("t").size(), 2000U);
  EXPECT_EQ(data.at("runs").at(0).at("spans").at("rows").size(), 3000U);
  EXPECT_EQ(data.at("runs").at(0).at("spans").at("total"), 50'000);
}

TEST(Report, OfTheSampleSuiteIsTheSameTwice) { EXPECT_EQ(sample_report(), sample_report()); }

}  // namespace
}  // namespace orrery::results
