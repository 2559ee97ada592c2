#include "emulator/results/verdict.hh"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "emulator/results/numbers.hh"
#include "emulator/results/thresholds.hh"

namespace orrery::results {
namespace {

std::string percent(double share, int digits = 1) { return fixed_text(100 * share, digits) + " %"; }

std::string plural(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void check_end(const RunLog& log, Verdict& verdict) {
  const auto invalid = [&](const std::string& text) {
    verdict.findings.push_back({Grade::invalid, "run", text, {}, {}});
  };
  if (log.records == 0) return invalid("The run left no records.");
  if (log.damaged) invalid("The record stream is damaged; what came before the damage is shown.");
  if (log.incomplete_bytes) invalid("The record stream was cut off; the run is incomplete.");
  if (!log.ended) {
    invalid("The run did not end; what is shown goes up to " +
            duration_text(static_cast<double>(log.end_ns()) / 1e9) + " of emulated time.");
  } else if (!log.ended->ok()) {
    invalid("The run failed: " +
            (log.ended->reason().empty() ? "no reason was given" : log.ended->reason()) + ".");
  }
}

void check_charges(const RunDescription& description, const RunLog& log, Verdict& verdict) {
  const std::optional<double> ratio = uncharged_ratio(log);
  if (!ratio) {
    if (log.ended && log.ended->ok())
      verdict.findings.push_back({Grade::faithful,
                                  "uncharged_ratio",
                                  "How much work went uncharged was not counted.",
                                  {},
                                  {}});
    return;
  }
  // By the host's clock it does take time: the host's.
  const bool live = description.engine == "live";
  if (live) {
    verdict.findings.push_back({Grade::faithful,
                                "uncharged_ratio",
                                percent(*ratio, 2) +
                                    " of the nodes' work was done outside charged kernels, at the "
                                    "host's own speed.",
                                *ratio,
                                {}});
    return;
  }
  const bool high = *ratio > thresholds::uncharged_ratio;
  verdict.findings.push_back({high ? Grade::degraded : Grade::faithful, "uncharged_ratio",
                              percent(*ratio, 2) +
                                  " of the nodes' work took no emulated time (limit " +
                                  percent(thresholds::uncharged_ratio, 0) + ").",
                              *ratio, thresholds::uncharged_ratio});
}

void check_profile(const RunDescription& description, const RunLog& log, Verdict& verdict) {
  if (description.cost != "profile") return;
  if (!description.profile_spread) {
    verdict.findings.push_back({Grade::faithful,
                                "profile_spread",
                                "The spread of the cost profile is not known.",
                                {},
                                {}});
  } else {
    const double spread = *description.profile_spread;
    verdict.findings.push_back(
        {spread > thresholds::profile_spread ? Grade::degraded : Grade::faithful, "profile_spread",
         "The profile's repetitions spread by p95/p50 = " + fixed_text(spread, 2) + " (limit " +
             fixed_text(thresholds::profile_spread, 1) + ").",
         spread, thresholds::profile_spread});
  }
  std::int64_t kernels = 0;
  std::int64_t interpolated = 0;
  for (const wire::NodeTotals& totals : log.totals) {
    kernels += totals.kernels();
    interpolated += totals.interpolated();
  }
  if (interpolated == 0 || kernels == 0) return;
  const double share = static_cast<double>(interpolated) / static_cast<double>(kernels);
  verdict.findings.push_back(
      {share > thresholds::interpolated_share ? Grade::degraded : Grade::faithful,
       "interpolated_share",
       "The times of " + percent(share, 2) +
           " of the kernels were scaled from another size, for the profile lacks them (limit " +
           percent(thresholds::interpolated_share, 0) + ").",
       share, thresholds::interpolated_share});
}

void check_bursts(const RunLog& log, Verdict& verdict) {
  double longest = 0;
  std::string where;
  for (const wire::LinkCheck& check : log.link_checks) {
    if (check.property() != "burst" || !(check.applied() > longest)) continue;
    longest = check.applied();
    where = check.link();
  }
  const double limit = thresholds::burst.in_seconds();
  if (where.empty()) return;
  verdict.findings.push_back({longest > limit ? Grade::degraded : Grade::faithful, "burst",
                              "The longest burst holds " + where + " for " +
                                  duration_text(longest) + " (limit " + duration_text(limit) + ").",
                              longest, limit});
}

void check_links(const RunLog& log, Verdict& verdict) {
  int ok = 0;
  bool earlier = false;
  std::set<std::string> unmeasured;
  for (const wire::LinkCheck& check : log.link_checks) {
    if (check.property() == "burst") continue;
    // What chance decides is judged by how likely it is, not by how far it is off.
    const bool certain = check.property() == "delay" || check.property() == "rate";
    if (certain && std::isfinite(check.measured()) && std::isfinite(check.asked()) &&
        check.asked() != 0) {
      const double error = std::abs(check.measured() / check.asked() - 1);
      verdict.worst_link_error = std::max(verdict.worst_link_error.value_or(0), error);
    }
    const std::string& says = check.verdict();
    if (says == "ok") {
      ++ok;
      earlier |= check.earlier();
    } else if (says.empty() || says.starts_with("not measured")) {
      unmeasured.insert(check.property());
    } else if (says != "none asked") {
      verdict.findings.push_back(
          {Grade::degraded, "link " + check.property(),
           "The " + check.property() + " of " + check.link() + " is " + says + ".",
           check.measured(), check.asked()});
    }
  }
  if (ok > 0)
    verdict.findings.push_back(
        {Grade::faithful,
         "links",
         plural(ok, "link figure") +
             (earlier ? " measured for an earlier run of the same plan"
                      : " measured before the run") +
             " and found as asked" +
             (verdict.worst_link_error ? "; the largest deviation of a delay or rate is " +
                                             percent(*verdict.worst_link_error, 2)
                                       : "") +
             ".",
         verdict.worst_link_error,
         {}});
  if (!unmeasured.empty()) {
    std::string names;
    for (const std::string& name : unmeasured) names += (names.empty() ? "" : ", ") + name;
    verdict.findings.push_back({Grade::faithful,
                                "links",
                                "Applied and read back, but not measured: " + names + ".",
                                {},
                                {}});
  }
  if (log.link_checks.empty() && log.node_count() > 1)
    verdict.findings.push_back(
        {Grade::degraded, "links", "The links were not checked before the run.", {}, {}});
}

void check_timeline(const RunLog& log, Verdict& verdict) {
  double latest = 0;
  std::string which;
  for (const wire::TimelineEvent& event : log.timeline) {
    const double late = static_cast<double>(event.actual() - event.planned()) / 1e9;
    if (late <= latest) continue;
    latest = late;
    which = event.name();
  }
  const double limit = thresholds::timeline_lateness.in_seconds();
  if (latest <= limit) return;
  verdict.findings.push_back({Grade::degraded, "timeline_lateness",
                              "The event " + which + " took effect " + duration_text(latest) +
                                  " late (limit " + duration_text(limit) + ").",
                              latest, limit});
}

void check_watchdog(const RunDescription& description, Verdict& verdict) {
  if (!description.watchdog_share || *description.watchdog_share <= thresholds::watchdog_share)
    return;
  // In the exact and the virtual engine the host's speed changes no emulated time.
  const bool harmless = description.engine == "exact" || description.engine == "virtual";
  verdict.findings.push_back({harmless ? Grade::faithful : Grade::degraded, "watchdog_share",
                              "Emulated time once stood still for " +
                                  percent(*description.watchdog_share, 0) +
                                  " of the watchdog's limit.",
                              *description.watchdog_share, thresholds::watchdog_share});
}

// Whether the host kept up with the clock that it is.
void check_pace(const RunLog& log, Verdict& verdict) {
  double worst = 0;
  std::string who;
  std::int64_t overruns = 0;
  for (const wire::NodeTotals& totals : log.totals) {
    overruns += totals.overruns();
    if (log.end_ns() <= 0) continue;
    const double share =
        static_cast<double>(totals.overrun_ns()) / static_cast<double>(log.end_ns());
    if (share < worst || (!who.empty() && share == worst)) continue;
    worst = share;
    who = log.node_name(totals.node());
  }
  if (!who.empty()) {
    const Grade grade = worst > thresholds::overrun_share_invalid ? Grade::invalid
                        : worst > thresholds::overrun_share       ? Grade::degraded
                                                                  : Grade::faithful;
    std::string text = plural(overruns, "kernel") +
                       " took the host longer than the device would have taken; on " + who +
                       ", where it is worst, by " + percent(worst, 2) +
                       " of the run's time (limits " + percent(thresholds::overrun_share, 0) +
                       " and " + percent(thresholds::overrun_share_invalid, 0) + ").";
    if (grade != Grade::faithful)
      text +=
          " Give the nodes slower devices, use fewer of them, free the host of other load, or "
          "take the exact engine.";
    verdict.findings.push_back({grade, "overrun_share", text, worst, thresholds::overrun_share});
  }
  if (log.link_lateness.empty()) return;
  const auto latest =
      std::max_element(log.link_lateness.begin(), log.link_lateness.end(),
                       [](const auto& a, const auto& b) { return a.p99_ns() < b.p99_ns(); });
  const double late = static_cast<double>(latest->p99_ns()) / 1e9;
  const double limit = thresholds::release_lateness.in_seconds();
  verdict.findings.push_back({late > limit ? Grade::degraded : Grade::faithful, "release_lateness",
                              "Of 100 packets one left " + latest->link() + " " +
                                  duration_text(late) + " late or later (limit " +
                                  duration_text(limit) + ").",
                              late, limit});
}

std::vector<std::string> assumptions(const RunDescription& description) {
  std::vector<std::string> list;
  if (description.engine == "exact")
    list.push_back(
        "Time is virtual: it passes only while every node sleeps, so the host's speed and load "
        "change no figure. The TCP/IP stack and the link shaping are Linux's own.");
  else if (description.engine == "live")
    list.push_back("Time is the host's clock: other load on the host can disturb the figures.");
  else if (description.engine == "virtual")
    list.push_back("The network is a flow model, not a TCP/IP stack.");
  else
    list.push_back("The engine is not named; nothing is known of how time passed.");

  if (description.cost == "profile")
    list.push_back(
        "A kernel takes its median time in the host's profile, divided by the device's speed: a "
        "device is taken to be a uniformly slower or faster host.");
  else if (description.cost == "model")
    list.push_back(
        "A kernel takes the time of a roofline model of its device (operations, bytes and an "
        "overhead a call): caches and real libraries on the device may differ.");
  else if (description.cost == "measured")
    list.push_back("A kernel takes the time that it took on the host, divided by the speed.");
  list.push_back(
      "Work outside charged kernels and the evaluation of test accuracy take no emulated time.");
  return list;
}

}  // namespace

const char* to_string(Grade grade) {
  switch (grade) {
    case Grade::faithful:
      return "faithful";
    case Grade::degraded:
      return "degraded";
    case Grade::invalid:
      return "invalid";
  }
  return "invalid";
}

std::vector<std::string> Verdict::reasons() const {
  std::vector<std::string> list;
  for (const Finding& finding : findings)
    if (finding.effect != Grade::faithful) list.push_back(finding.text);
  return list;
}

Verdict judge(const RunDescription& description, const RunLog& log) {
  Verdict verdict;
  check_end(log, verdict);
  if (log.records > 0) {
    check_charges(description, log, verdict);
    check_profile(description, log, verdict);
    check_links(log, verdict);
    check_bursts(log, verdict);
    check_timeline(log, verdict);
    check_watchdog(description, verdict);
    if (description.engine == "live") check_pace(log, verdict);
  }
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.effect > b.effect; });
  if (verdict.findings.empty())
    verdict.findings.push_back(
        {Grade::faithful, "run", "The run ended as its stop rule says.", {}, {}});
  verdict.grade = verdict.findings.front().effect;
  verdict.assumptions = assumptions(description);
  return verdict;
}

nlohmann::json to_json(const Verdict& verdict) {
  const auto or_null = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : verdict.findings)
    findings.push_back({{"effect", to_string(finding.effect)},
                        {"figure", finding.figure},
                        {"text", finding.text},
                        {"value", or_null(finding.value)},
                        {"limit", or_null(finding.limit)}});
  return {{"grade", to_string(verdict.grade)},
          {"findings", findings},
          {"assumptions", verdict.assumptions},
          {"worst_link_error", or_null(verdict.worst_link_error)}};
}

std::optional<double> uncharged_ratio(const RunLog& log) {
  double charged = 0;
  double uncharged = 0;
  for (const wire::NodeTotals& totals : log.totals) {
    charged += static_cast<double>(totals.charged_cycles());
    uncharged += static_cast<double>(totals.uncharged_cycles());
  }
  if (charged + uncharged <= 0) return {};
  return uncharged / (charged + uncharged);
}

}  // namespace orrery::results
