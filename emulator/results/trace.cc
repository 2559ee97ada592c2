#include "emulator/results/trace.hh"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "emulator/results/numbers.hh"

namespace orrery::results {
namespace {

constexpr std::array<std::string_view, 4> tracks{"compute", "wait", "send", "pause"};
constexpr int run_process = 0;  // nodes are processes 1, 2, …

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Trace times are microseconds: three decimals keep each nanosecond.
std::string microseconds(std::int64_t ns) {
  const std::int64_t size = std::abs(ns);
  std::string fraction = std::to_string(size % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return (ns < 0 ? "-" : "") + std::to_string(size / 1000) + "." + fraction;
}

class Writer {
 public:
  void event(const std::string& body) {
    text_ += text_.empty() ? "{\"traceEvents\":[\n{" : ",\n{";
    text_ += body + "}";
  }
  void name(const char* what, int process, int thread, const std::string& name) {
    event("\"ph\":\"M\",\"name\":\"" + std::string(what) + "\"," + place(process, thread) +
          ",\"args\":{\"name\":" + quoted(name) + "}");
  }
  void sort(int process, int index) {
    event("\"ph\":\"M\",\"name\":\"process_sort_index\"," + place(process, 0) +
          ",\"args\":{\"sort_index\":" + std::to_string(index) + "}");
  }
  void counter(std::int64_t t, const std::string& name, double value) {
    if (!std::isfinite(value)) return;
    event("\"ph\":\"C\",\"name\":" + quoted(name) + "," + place(run_process, 0) +
          ",\"ts\":" + microseconds(t) + ",\"args\":{\"value\":" + number_text(value) + "}");
  }
  static std::string place(int process, int thread) {
    return "\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread);
  }
  std::string finish() {
    if (text_.empty()) text_ = "{\"traceEvents\":[";
    return text_ + "\n],\"displayTimeUnit\":\"ns\"}\n";
  }

 private:
  std::string text_;
};

int track_of(const std::string& category) {
  for (std::size_t i = 0; i < tracks.size(); ++i)
    if (tracks[i] == category) return static_cast<int>(i);
  return static_cast<int>(tracks.size());
}

}  // namespace

std::string trace_json(const RunLog& log) {
  Writer out;
  out.name("process_name", run_process, 0, log.started ? log.started->run() : "run");
  out.sort(run_process, 0);
  for (int node = 0; node < log.node_count(); ++node) {
    out.name("process_name", node + 1, 0, log.node_name(node));
    out.sort(node + 1, node + 1);
    for (std::size_t i = 0; i < tracks.size(); ++i)
      out.name("thread_name", node + 1, static_cast<int>(i), std::string(tracks[i]));
  }

  for (const wire::Span& span : log.spans)
    out.event("\"ph\":\"X\",\"cat\":" + quoted(span.category()) +
              ",\"name\":" + quoted(span.name()) + "," +
              Writer::place(span.node() + 1, track_of(span.category())) + ",\"ts\":" +
              microseconds(span.begin()) + ",\"dur\":" + microseconds(span.end() - span.begin()));

  for (const wire::NodeState& state : log.node_states)
    out.event("\"ph\":\"i\",\"s\":\"p\",\"cat\":\"state\",\"name\":" + quoted(state.state()) + "," +
              Writer::place(state.node() + 1, 0) + ",\"ts\":" + microseconds(state.t()) +
              ",\"args\":{\"reason\":" + quoted(state.reason()) + "}");

  for (const wire::TimelineEvent& event : log.timeline)
    out.event("\"ph\":\"i\",\"s\":\"g\",\"cat\":\"timeline\",\"name\":" +
              quoted(event.name() + (event.is_end() ? " ends" : "")) + "," +
              Writer::place(run_process, 0) + ",\"ts\":" + microseconds(event.actual()) +
              ",\"args\":{\"what\":" + quoted(event.what()) + ",\"target\":" +
              quoted(event.target()) + ",\"planned_us\":" + microseconds(event.planned()) + "}");

  for (const wire::Step& step : log.steps)
    out.counter(step.t(), "loss of " + log.node_name(step.node()), step.loss());
  for (const wire::Evaluation& evaluation : log.evaluations) {
    out.counter(evaluation.t(), "test accuracy", evaluation.accuracy());
    out.counter(evaluation.t(), "test loss", evaluation.loss());
  }
  return out.finish();
}

}  // namespace orrery::results
