#include "emulator/results/run_log.hh"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hh"
#include "proto/record_stream.hh"

namespace orrery::results {
namespace {

// Sorts by `key`, records of equal keys in the order of the stream.
template <typename T, typename Key>
void order(std::vector<T>& records, Key key) {
  std::stable_sort(records.begin(), records.end(),
                   [&](const T& a, const T& b) { return key(a) < key(b); });
}

// Keeps the last record of each key, in the order of the keys.
template <typename T, typename Key>
void keep_last(std::vector<T>& records, Key key) {
  std::map<decltype(key(records.front())), T> last;
  for (T& record : records) last[key(record)] = std::move(record);
  records.clear();
  for (auto& [unused, record] : last) records.push_back(std::move(record));
}

class Builder {
 public:
  void add(const wire::Record& record) {
    ++log_.records;
    switch (record.kind_case()) {
      case wire::Record::kRunStarted:
        if (!log_.started) log_.started = record.run_started();
        break;
      case wire::Record::kNodeState:
        log_.node_states.push_back(record.node_state());
        reach(record.node_state().t());
        break;
      case wire::Record::kStep:
        log_.steps.push_back(record.step());
        reach(record.step().t());
        break;
      case wire::Record::kSpan:
        log_.spans.push_back(record.span());
        reach(record.span().end());
        break;
      case wire::Record::kSnapshot:
        reach(record.snapshot().t());  // parameters: read by the evaluator, not kept here
        break;
      case wire::Record::kLinkCheck:
        log_.link_checks.push_back(record.link_check());
        break;
      case wire::Record::kLinkCounters:
        log_.link_counters.push_back(record.link_counters());
        reach(record.link_counters().t());
        break;
      case wire::Record::kLinkLateness:
        log_.link_lateness.push_back(record.link_lateness());
        break;
      case wire::Record::kTimelineEvent:
        log_.timeline.push_back(record.timeline_event());
        reach(record.timeline_event().actual());
        break;
      case wire::Record::kTraffic:
        log_.traffic.push_back(record.traffic());
        break;
      case wire::Record::kNodeTotals:
        log_.totals.push_back(record.node_totals());
        break;
      case wire::Record::kRunEnded:
        log_.ended = record.run_ended();
        reach(record.run_ended().t());
        break;
      case wire::Record::kEvaluation:
        log_.evaluations.push_back(record.evaluation());
        reach(record.evaluation().t());
        break;
      case wire::Record::kHeartbeat:
        reach(record.heartbeat().t());
        break;
      case wire::Record::KIND_NOT_SET:
        break;  // of a newer version
    }
  }

  RunLog finish() {
    order(log_.node_states, [](const auto& r) { return std::tuple(r.t(), r.node()); });
    order(log_.steps, [](const auto& r) { return std::tuple(r.t(), r.node()); });
    order(log_.spans, [](const auto& r) { return std::tuple(r.begin(), r.node()); });
    order(log_.link_checks, [](const auto& r) { return r.link(); });
    keep_last(log_.link_lateness, [](const auto& r) { return r.link(); });
    order(log_.link_counters, [](const auto& r) { return std::tuple(r.t(), r.link()); });
    order(log_.timeline,
          [](const auto& r) { return std::tuple(r.actual(), r.name(), r.target()); });
    order(log_.evaluations, [](const auto& r) { return std::tuple(r.t(), r.step()); });
    keep_last(log_.traffic, [](const auto& r) { return std::tuple(r.node(), r.peer(), r.kind()); });
    keep_last(log_.totals, [](const auto& r) { return r.node(); });
    return std::move(log_);
  }

  RunLog& log() { return log_; }

 private:
  void reach(std::int64_t t) { log_.last_t = std::max(log_.last_t, t); }

  RunLog log_;
};

}  // namespace

std::string RunLog::node_name(int node) const {
  if (started && node >= 0 && node < started->nodes_size()) return started->nodes(node);
  return node < 0 ? "controller" : "node " + std::to_string(node);
}

int RunLog::node_count() const {
  int count = started ? started->nodes_size() : 0;
  for (const auto& record : steps) count = std::max(count, record.node() + 1);
  for (const auto& record : spans) count = std::max(count, record.node() + 1);
  for (const auto& record : totals) count = std::max(count, record.node() + 1);
  for (const auto& record : traffic)
    count = std::max({count, record.node() + 1, record.peer() + 1});
  return count;
}

RunLog make_log(const std::vector<wire::Record>& records) {
  Builder builder;
  for (const wire::Record& record : records) builder.add(record);
  return builder.finish();
}

RunLog load(const std::string& path) {
  Builder builder;
  RecordFileReader reader(path);
  try {
    reader.poll([&](const wire::Record& record) { builder.add(record); });
  } catch (const SystemError&) {
    throw;
  } catch (const Error&) {
    if (builder.log().records == 0) throw;
    builder.log().damaged = true;
  }
  builder.log().incomplete_bytes = reader.incomplete_bytes();
  return builder.finish();
}

LinkEnds link_ends(const std::string& link) {
  const auto arrow = link.find("->");
  if (arrow == std::string::npos) return {link, ""};
  return {link.substr(0, arrow), link.substr(arrow + 2)};
}

}  // namespace orrery::results
