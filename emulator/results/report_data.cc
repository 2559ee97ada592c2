#include "emulator/results/report_data.hh"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "emulator/results/curves.hh"
#include "emulator/results/summary.hh"
#include "emulator/results/table.hh"
#include "emulator/results/verdict.hh"

namespace orrery::results {
namespace {

using Json = nlohmann::ordered_json;

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Six significant digits are more than any screen shows, and keep the page small.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

Json to_json(const Curve& curve) {
  Json t = Json::array();
  Json bytes = Json::array();
  Json values = Json::array();
  for (const Point& point : curve.points) {
    t.push_back(in_seconds(point.t));
    bytes.push_back(static_cast<std::int64_t>(point.bytes + 0.5));
    values.push_back(rounded(point.value));
  }
  return {{"name", curve.name}, {"t", t}, {"bytes", bytes}, {"values", values}};
}

// Begin and end of an event are two records; here they become one, open-ended if the run ended
// first.
Json timeline(const RunLog& log, const WireBytes& bytes) {
  Json list = Json::array();
  std::map<std::pair<std::string, std::string>, std::size_t> open;
  for (const wire::TimelineEvent& event : log.timeline) {
    const std::pair key{event.name(), event.target()};
    const auto began = open.find(key);
    if (event.is_end() && began != open.end()) {
      list[began->second]["end"] = in_seconds(event.actual());
      list[began->second]["end_bytes"] = std::llround(bytes.at(event.actual()));
      open.erase(began);
      continue;
    }
    open[key] = list.size();
    list.push_back({{"name", event.name()},
                    {"what", event.what()},
                    {"target", event.target()},
                    {"type", event.type()},
                    {"planned", in_seconds(event.planned())},
                    {"begin", in_seconds(event.actual())},
                    {"begin_bytes", std::llround(bytes.at(event.actual()))},
                    {"end", nullptr},
                    {"end_bytes", nullptr}});
  }
  return list;
}

Json nodes(const RunDescription& description, const RunLog& log) {
  Json list = Json::array();
  for (int node = 0; node < log.node_count(); ++node) {
    Json entry{{"name", log.node_name(node)}};
    const auto speed = description.speeds.find(log.node_name(node));
    entry["speed"] = speed == description.speeds.end() ? Json(nullptr) : Json(speed->second);
    for (const wire::NodeTotals& totals : log.totals)
      if (totals.node() == node) {
        entry["busy"] = in_seconds(totals.busy_ns());
        entry["kernels"] = totals.kernels();
      }
    list.push_back(entry);
  }
  return list;
}

Json links(const RunLog& log) {
  std::map<std::string, Json> by_name;
  const auto entry = [&](const std::string& link) -> Json& {
    Json& json = by_name[link];
    if (json.is_null()) {
      const LinkEnds ends = link_ends(link);
      json = {{"name", link}, {"from", ends.from}, {"to", ends.to}, {"checks", Json::array()}};
    }
    return json;
  };
  for (const wire::LinkCheck& check : log.link_checks)
    entry(check.link())["checks"].push_back({{"property", check.property()},
                                             {"asked", or_null(check.asked())},
                                             {"applied", or_null(check.applied())},
                                             {"measured", or_null(check.measured())},
                                             {"verdict", check.verdict()}});
  for (const wire::LinkCounters& counters : log.link_counters) {
    Json& json = entry(counters.link());
    json["packets"] = counters.packets();
    json["bytes"] = counters.bytes();
    json["dropped"] = counters.dropped();
  }
  Json list = Json::array();
  for (auto& [unused, json] : by_name) list.push_back(std::move(json));
  return list;
}

Json spans(const RunLog& log, std::size_t limit) {
  std::map<std::string, std::size_t> names;
  Json name_list = Json::array();
  Json rows = Json::array();
  const auto index = [&](const std::string& name) {
    const auto [at, is_new] = names.emplace(name, names.size());
    if (is_new) name_list.push_back(name);
    return at->second;
  };
  const std::size_t count = std::min(limit, log.spans.size());
  for (std::size_t i = 0; i < count; ++i) {
    const wire::Span& span = log.spans[i];
    rows.push_back({in_seconds(span.begin()), in_seconds(span.end()), span.node(),
                    index(span.category()), index(span.name())});
  }
  return {{"total", log.spans.size()}, {"names", name_list}, {"rows", rows}};
}

Json traffic(const RunLog& log) {
  Json list = Json::array();
  for (const wire::Traffic& record : log.traffic)
    list.push_back({{"from", record.node()},
                    {"to", record.peer()},
                    {"kind", record.kind()},
                    {"messages", record.messages()},
                    {"bytes", record.bytes()}});
  return list;
}

}  // namespace

nlohmann::ordered_json report_data(const std::string& title, std::span<const RunView> runs,
                                   const ReportLimits& limits) {
  Json list = Json::array();
  std::vector<RunSummary> summaries;
  for (const RunView& view : runs) {
    const RunDescription& description = *view.description;
    const RunLog& log = *view.log;
    const WireBytes bytes(log);
    const Verdict verdict = judge(description, log);
    summaries.push_back(summarise(description, log, verdict));
    list.push_back({{"summary", to_json(summaries.back())},
                    {"complete", log.complete()},
                    {"ended", log.ended ? log.ended->reason() : ""},
                    {"verdict", Json(to_json(verdict))},
                    {"engine", description.engine},
                    {"cost", description.cost},
                    {"byte_readings", bytes.readings()},
                    {"curves",
                     {{"accuracy", to_json(test_accuracy(log, bytes, limits.curve_points))},
                      {"test_loss", to_json(test_loss(log, bytes, limits.curve_points))},
                      {"own_loss", to_json(own_loss(log, bytes, limits.curve_points))}}},
                    {"timeline", timeline(log, bytes)},
                    {"nodes", nodes(description, log)},
                    {"links", links(log)},
                    {"spans", spans(log, limits.spans)},
                    {"traffic", traffic(log)},
                    {"experiment", description.experiment},
                    {"command_line", description.command_line},
                    {"versions", description.versions},
                    {"host", description.host}});
  }
  return {{"title", title}, {"remark", shipping_remark(summaries)}, {"runs", list}};
}

}  // namespace orrery::results
