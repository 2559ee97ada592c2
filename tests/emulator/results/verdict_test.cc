#include "emulator/results/verdict.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fd.hh"
#include "emulator/results/numbers.hh"
#include "emulator/results/thresholds.hh"
#include "tests/emulator/results/records.hh"

namespace orrery::results {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RunDescription exact() {
  RunDescription description;
  description.engine = "exact";
  description.cost = "model";
  return description;
}

// A run that nothing can be said against; `extra` goes before its end.
std::vector<wire::Record> good(const std::vector<wire::Record>& extra = {}) {
  std::vector<wire::Record> records{started("r", "s", {"a", "b"}),
                                    check("a->switch", "delay", 0.02, 0.02, 0.02001, "ok"),
                                    totals(0, 1, 1000, 99, 1)};
  records.insert(records.end(), extra.begin(), extra.end());
  records.push_back(ended(10));
  return records;
}

TEST(Judge, AGoodRunIsFaithfulAndSaysWhatItAssumes) {
  const Verdict verdict = judge(exact(), make_log(good()));
  EXPECT_EQ(verdict.grade, Grade::faithful);
  EXPECT_THAT(verdict.reasons(), IsEmpty());
  EXPECT_THAT(verdict.findings, Not(IsEmpty()));
  EXPECT_THAT(verdict.assumptions, Contains(HasSubstr("roofline")));
  EXPECT_THAT(verdict.assumptions, Contains(HasSubstr("Time is virtual")));
  EXPECT_NEAR(verdict.worst_link_error.value(), 0.0005, 1e-9);
}

TEST(Judge, NoRecordsAreInvalid) {
  const Verdict verdict = judge(exact(), make_log({}));
  EXPECT_EQ(verdict.grade, Grade::invalid);
  EXPECT_THAT(verdict.reasons(), ElementsAre("The run left no records."));
  EXPECT_THAT(verdict.assumptions, Not(IsEmpty()));
}

TEST(Judge, ARunThatDidNotEndIsInvalid) {
  auto records = good({node_state(2'000'000'000, 0, "running")});
  records.pop_back();
  EXPECT_THAT(
      judge(exact(), make_log(records)).reasons(),
      ElementsAre("The run did not end; what is shown goes up to 2.00 s of emulated time."));
}

TEST(Judge, AFailedRunIsInvalidAndGivesItsReason) {
  auto records = good();
  records.back() = ended(5, false, "b was killed");
  const Verdict verdict = judge(exact(), make_log(records));
  EXPECT_EQ(verdict.grade, Grade::invalid);
  EXPECT_THAT(verdict.reasons(), ElementsAre("The run failed: b was killed."));
}

TEST(Judge, ACutOrDamagedStreamIsInvalid) {
  RunLog log = make_log(good());
  log.incomplete_bytes = 3;
  EXPECT_EQ(judge(exact(), log).grade, Grade::invalid);
  log.incomplete_bytes = 0;
  log.damaged = true;
  EXPECT_EQ(judge(exact(), log).grade, Grade::invalid);
}

TEST(Judge, MoreThanFivePercentUnchargedDegrades) {
  EXPECT_EQ(judge(exact(), make_log(good({totals(1, 1, 1, 91, 9)}))).grade, Grade::faithful);
  const Verdict verdict = judge(exact(), make_log(good({totals(1, 1, 1, 90, 10)})));
  EXPECT_EQ(verdict.grade, Grade::degraded);
  EXPECT_THAT(verdict.reasons(),
              ElementsAre("5.50 % of the nodes' work took no emulated time (limit 5 %)."));
}

TEST(Judge, AWideProfileDegradesOnlyWhereItIsUsed) {
  RunDescription description = exact();
  description.profile_spread = 1.21;
  EXPECT_EQ(judge(description, make_log(good())).grade, Grade::faithful);
  description.cost = "profile";
  EXPECT_EQ(judge(description, make_log(good())).grade, Grade::degraded);
  description.profile_spread = 1.2;
  EXPECT_EQ(judge(description, make_log(good())).grade, Grade::faithful);
  EXPECT_EQ(judge(description, make_log(good({totals(1, 1, 1000, 99, 1, 0, 0, 21)}))).grade,
            Grade::degraded);
}

TEST(Judge, LongBurstsDegrade) {
  const auto burst = [](double seconds) {
    return make_log(good({check("a->switch", "burst", nan, seconds, nan, "")}));
  };
  EXPECT_EQ(judge(exact(), burst(50e-6)).grade, Grade::faithful);
  const Verdict verdict = judge(exact(), burst(120e-6));
  EXPECT_EQ(verdict.grade, Grade::degraded);
  EXPECT_THAT(verdict.reasons(),
              ElementsAre("The longest burst holds a->switch for 120 µs (limit 50.0 µs)."));
}

TEST(Judge, ALinkThatIsOffDegrades) {
  const Verdict verdict =
      judge(exact(), make_log(good({check("b->switch", "rate", 1e8, 1e8, 9e7, "off by 10 %")})));
  EXPECT_EQ(verdict.grade, Grade::degraded);
  EXPECT_THAT(verdict.reasons(), ElementsAre("The rate of b->switch is off by 10 %."));
  EXPECT_NEAR(verdict.worst_link_error.value(), 0.1, 1e-9);
}

TEST(Judge, WhatWasNotMeasuredIsMentionedAndNotCalledGood) {
  const Verdict verdict = judge(exact(), make_log(good({check("b->switch", "loss", 0.01, 0.01, nan,
                                                              "not measured: too few packets")})));
  EXPECT_EQ(verdict.grade, Grade::faithful);
  bool mentioned = false;
  for (const Finding& finding : verdict.findings)
    mentioned |= finding.text == "Applied and read back, but not measured: loss.";
  EXPECT_TRUE(mentioned);
}

TEST(Judge, LinksThatWereNotCheckedAtAllDegrade) {
  const Verdict verdict = judge(exact(), make_log({started("r", "s", {"a", "b"}), ended(1)}));
  EXPECT_EQ(verdict.grade, Grade::degraded);
  EXPECT_EQ(judge(exact(), make_log({started("r", "s", {"a"}), ended(1)})).grade, Grade::faithful);
}

TEST(Judge, ALateEventDegrades) {
  EXPECT_EQ(
      judge(exact(), make_log(good({event("e", "", 0, 1'000'000, "a", "slow", false)}))).grade,
      Grade::faithful);
  EXPECT_EQ(
      judge(exact(), make_log(good({event("e", "", 0, 1'000'001, "a", "slow", false)}))).grade,
      Grade::degraded);
}

TEST(Judge, NearMissOfTheWatchdogMattersWhereTheHostKeepsTime) {
  RunDescription description = exact();
  description.watchdog_share = 0.8;
  EXPECT_EQ(judge(description, make_log(good())).grade, Grade::faithful);
  EXPECT_THAT(to_json(judge(description, make_log(good()))).dump(),
              HasSubstr("80 % of the watchdog"));
  description.engine = "live";
  EXPECT_EQ(judge(description, make_log(good())).grade, Grade::degraded);
}

TEST(Judge, ALiveRunMustKeepUpWithItsClock) {
  RunDescription description = exact();
  description.engine = "live";
  const auto grade = [&](const wire::Record& record) {
    return judge(description, make_log(good({record}))).grade;
  };
  constexpr std::int64_t length = 1'000'000;
  const auto late_by = [](std::int64_t ns) { return totals(0, 5, 10, 99, 1, 0, 0, 0, 3, ns); };
  const auto grade_of = [&](std::int64_t ns) {
    auto records = good({late_by(ns)});
    records.back() = ended(length);
    return judge(description, make_log(records)).grade;
  };
  EXPECT_EQ(grade_of(length / 100), Grade::faithful);
  EXPECT_EQ(grade_of(length / 100 + 1), Grade::degraded);
  EXPECT_EQ(grade_of(length / 10 + 1), Grade::invalid);
  EXPECT_EQ(grade(lateness("a->switch", 500'000)), Grade::faithful);
  EXPECT_EQ(grade(lateness("a->switch", 500'001)), Grade::degraded);
  // Work outside kernels takes the host's time there, so it is no omission.
  EXPECT_EQ(grade(totals(1, 1, 1, 1, 99)), Grade::faithful);
  // By virtual time none of it matters.
  EXPECT_EQ(judge(exact(), make_log(good({late_by(length)}))).grade, Grade::faithful);
}

TEST(Judge, TheWorstFindingComesFirst) {
  auto records = good({totals(1, 1, 1, 1, 99)});
  records.back() = ended(5, false, "x");
  const Verdict verdict = judge(exact(), make_log(records));
  EXPECT_EQ(verdict.findings.front().effect, Grade::invalid);
  EXPECT_EQ(verdict.findings.at(1).effect, Grade::degraded);
}

TEST(Thresholds, AreThoseOfThePage) {
  const std::string page = read_file(ORRERY_SOURCE_DIR "/docs/results.md");
  EXPECT_THAT(page, HasSubstr("uncharged_ratio > " +
                              fixed_text(100 * thresholds::uncharged_ratio, 0) + " %"));
  EXPECT_THAT(page, HasSubstr("p95/p50 > " + fixed_text(thresholds::profile_spread, 1)));
  EXPECT_THAT(page, HasSubstr("> " + fixed_text(100 * thresholds::interpolated_share, 0) +
                              " % of the kernels"));
  EXPECT_THAT(page, HasSubstr("> " + fixed_text(100 * thresholds::overrun_share, 0) +
                              " % of the run's time"));
  EXPECT_THAT(page, HasSubstr("> " + fixed_text(100 * thresholds::overrun_share_invalid, 0) +
                              " % of the run's time"));
  EXPECT_THAT(page, HasSubstr("> " + to_string(thresholds::release_lateness) + " late"));
  EXPECT_THAT(page, HasSubstr("burst > " + to_string(thresholds::burst)));
  EXPECT_THAT(page, HasSubstr("> " + to_string(thresholds::timeline_lateness) + " late"));
  EXPECT_THAT(page, HasSubstr("> " + fixed_text(100 * thresholds::watchdog_share, 0) +
                              " % of the watchdog's limit"));
}

}  // namespace
}  // namespace orrery::results
