#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include "emulator/metrics/exporter.hh"
#include "emulator/metrics/families.hh"
#include "emulator/metrics/metrics.hh"

namespace orrery::metrics {
namespace {

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

constexpr std::array run_states{"running", "finished", "failed"};

/// The records of one run, turned into metrics.
class RunSink : public RecordSink {
 public:
  RunSink(Families& families, std::string run) : families_(families), run_(std::move(run)) {}

  void write(const wire::Record& record) override {
    count(Id::records, {}, 1);
    if (record.has_run_started() && !has_started_) {
      has_started_ = true;
      started(record.run_started());
      for (const wire::Record& earlier : early_) take(earlier);
      early_.clear();
    } else if (!has_started_) {
      early_.push_back(record);
    } else {
      take(record);
    }
  }

 private:
  using Values = std::vector<std::string>;

  void take(const wire::Record& record) {
    switch (record.kind_case()) {
      case wire::Record::kRunStarted:
        break;
      case wire::Record::kNodeState:
        state(record.node_state());
        break;
      case wire::Record::kStep:
        step(record.step());
        break;
      case wire::Record::kSpan:
        span(record.span());
        break;
      case wire::Record::kSnapshot:
        reach(record.snapshot().t());
        break;
      case wire::Record::kLinkCheck:
        check(record.link_check());
        break;
      case wire::Record::kLinkCounters:
        counters(record.link_counters());
        break;
      case wire::Record::kLinkLateness:
        set(Id::link_lateness, {record.link_lateness().link()},
            in_seconds(record.link_lateness().p99_ns()));
        break;
      case wire::Record::kTimelineEvent:
        event(record.timeline_event());
        break;
      case wire::Record::kTraffic:
        traffic(record.traffic());
        break;
      case wire::Record::kNodeTotals:
        totals(record.node_totals());
        break;
      case wire::Record::kRunEnded:
        ended(record.run_ended());
        break;
      case wire::Record::kEvaluation:
        set(Id::test_accuracy, {}, record.evaluation().accuracy());
        set(Id::test_loss, {}, record.evaluation().loss());
        break;
      case wire::Record::kHeartbeat:
        reach(record.heartbeat().t());
        break;
      case wire::Record::KIND_NOT_SET:
        break;
    }
  }

  void set(Id id, const Values& labels, double value) { families_.set(id, run_, labels, value); }
  void count(Id id, const Values& labels, double by) { families_.add(id, run_, labels, by); }
  void raise(Id id, const Values& labels, double to) { families_.raise(id, run_, labels, to); }

  std::string name(int node) const {
    const auto index = static_cast<std::size_t>(node);
    return node >= 0 && index < nodes_.size() ? nodes_[index] : "node " + std::to_string(node);
  }
  void reach(std::int64_t t) {
    last_ = std::max(last_, t);
    set(Id::emulated_seconds, {}, in_seconds(last_));
  }
  void run_state(const std::string& now) {
    for (const char* state : run_states) set(Id::run_state, {state}, now == state ? 1 : 0);
  }

  void started(const wire::RunStarted& record) {
    nodes_.assign(record.nodes().begin(), record.nodes().end());
    set(Id::run_info, {record.strategy(), std::to_string(record.seed())}, 1);
    run_state("running");
    reach(0);
  }
  void state(const wire::NodeState& record) {
    const auto last = states_.find(record.node());
    if (last != states_.end()) set(Id::node_state, {name(record.node()), last->second}, 0);
    states_[record.node()] = record.state();
    set(Id::node_state, {name(record.node()), record.state()}, 1);
    reach(record.t());
  }
  void step(const wire::Step& record) {
    const Values labels{name(record.node()), record.phase()};
    count(Id::steps, labels, 1);
    if (record.samples() > 0)
      count(Id::samples, {labels[0]}, static_cast<double>(record.samples()));
    if (!std::isnan(record.loss())) set(Id::loss, labels, record.loss());
    reach(record.t());
  }
  void span(const wire::Span& record) {
    const double seconds = std::max(0.0, in_seconds(record.end() - record.begin()));
    if (record.category() == "compute") count(Id::device_busy, {name(record.node())}, seconds);
    if (record.category() == "wait") count(Id::device_wait, {name(record.node())}, seconds);
    reach(record.end());
  }
  void check(const wire::LinkCheck& record) {
    if (record.asked() == 0 || !std::isfinite(record.asked()) || std::isnan(record.measured()))
      return;
    set(Id::link_check, {record.link(), record.property()}, record.measured() / record.asked());
  }
  void counters(const wire::LinkCounters& record) {
    raise(Id::link_bytes, {record.link()}, static_cast<double>(record.bytes()));
    raise(Id::link_packets, {record.link()}, static_cast<double>(record.packets()));
    raise(Id::link_drops, {record.link()}, static_cast<double>(record.dropped()));
    reach(record.t());
  }
  void event(const wire::TimelineEvent& record) {
    const Values labels{record.name(), record.target()};
    set(Id::timeline_active, labels, record.is_end() ? 0 : 1);
    set(Id::timeline_lateness, labels, in_seconds(record.actual() - record.planned()));
    reach(record.actual());
  }
  void traffic(const wire::Traffic& record) {
    const Values labels{name(record.node()), name(record.peer()), record.kind()};
    raise(Id::sent_bytes, labels, static_cast<double>(record.bytes()));
    raise(Id::sent_messages, labels, static_cast<double>(record.messages()));
  }
  void totals(const wire::NodeTotals& record) {
    // Spans are kept up to a limit only; the total is what counts.
    raise(Id::device_busy, {name(record.node())}, in_seconds(record.busy_ns()));
    if (record.overruns() == 0) return;
    raise(Id::overruns, {name(record.node())}, static_cast<double>(record.overruns()));
    raise(Id::overrun_seconds, {name(record.node())}, in_seconds(record.overrun_ns()));
  }
  void ended(const wire::RunEnded& record) {
    reach(record.t());
    run_state(record.ok() ? "finished" : "failed");
  }

  Families& families_;
  std::string run_;
  bool has_started_ = false;
  std::vector<wire::Record> early_;  ///< before run_started, which alone knows the nodes' names
  std::vector<std::string> nodes_;
  std::map<int, std::string> states_;
  std::int64_t last_ = 0;
};

prometheus::Labels make_labels(const Metric& metric, const std::string& run,
                               const std::vector<std::string>& values) {
  prometheus::Labels labels{{"run", run}};
  std::string_view names = metric.labels;
  for (const std::string& value : values) {
    if (names.empty()) throw std::logic_error(std::string(metric.name) + " has fewer labels");
    const auto comma = names.find(',');
    labels[std::string(names.substr(0, comma))] = value;
    names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
  }
  if (!names.empty()) throw std::logic_error(std::string(metric.name) + " has more labels");
  return labels;
}

}  // namespace

Families::Families() : registry_(std::make_shared<prometheus::Registry>()) {
  for (const Metric& metric : table) {
    const std::string name(metric.name);
    const std::string help(metric.help);
    if (metric.type == Type::gauge)
      gauges_[metric.id] = &prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
    else
      counters_[metric.id] = &prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
  }
}

void Families::set(Id id, const std::string& run, const std::vector<std::string>& labels,
                   double value) {
  gauges_.at(id)->Add(make_labels(metric(id), run, labels)).Set(value);
}

void Families::add(Id id, const std::string& run, const std::vector<std::string>& labels,
                   double by) {
  counters_.at(id)->Add(make_labels(metric(id), run, labels)).Increment(by);
}

void Families::raise(Id id, const std::string& run, const std::vector<std::string>& labels,
                     double to) {
  prometheus::Counter& counter = counters_.at(id)->Add(make_labels(metric(id), run, labels));
  counter.Increment(std::max(0.0, to - counter.Value()));
}

Book::Book() : families_(std::make_unique<Families>()) {}
Book::~Book() = default;

std::unique_ptr<RecordSink> Book::sink(const std::string& run) {
  return std::make_unique<RunSink>(*families_, run);
}

void Book::set_host_seconds(const std::string& run, double seconds) {
  families_->set(Id::host_seconds, run, {}, seconds);
}

std::string Book::text() const {
  return prometheus::TextSerializer().Serialize(families_->registry()->Collect());
}

}  // namespace orrery::metrics
