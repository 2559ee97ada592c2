#include "emulator/results/events.hh"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "emulator/results/numbers.hh"

namespace orrery::results {
namespace {

struct Line {
  std::int64_t t;
  nlohmann::ordered_json json;
};

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

nlohmann::ordered_json or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string events_jsonl(const RunLog& log) {
  std::vector<Line> lines;
  if (log.started) {
    const wire::RunStarted& started = *log.started;
    lines.push_back(
        {0,
         {{"type", "run_started"},
          {"run", started.run()},
          {"strategy", started.strategy()},
          {"seed", started.seed()},
          {"nodes", std::vector<std::string>(started.nodes().begin(), started.nodes().end())}}});
  }
  for (const wire::LinkCheck& check : log.link_checks)
    lines.push_back({0,
                     {{"type", "link_check"},
                      {"link", check.link()},
                      {"property", check.property()},
                      {"asked", or_null(check.asked())},
                      {"applied", or_null(check.applied())},
                      {"measured", or_null(check.measured())},
                      {"verdict", check.verdict()},
                      {"earlier", check.earlier()}}});
  for (const wire::NodeState& state : log.node_states)
    lines.push_back({state.t(),
                     {{"type", "node_state"},
                      {"node", log.node_name(state.node())},
                      {"state", state.state()},
                      {"reason", state.reason()}}});
  for (const wire::TimelineEvent& event : log.timeline)
    lines.push_back({event.actual(),
                     {{"type", "timeline"},
                      {"event", event.name()},
                      {"action", event.type()},
                      {"edge", event.is_end() ? "end" : "begin"},
                      {"target", event.target()},
                      {"what", event.what()},
                      {"planned", in_seconds(event.planned())},
                      {"actual", in_seconds(event.actual())}}});
  for (const wire::Evaluation& evaluation : log.evaluations)
    lines.push_back({evaluation.t(),
                     {{"type", "evaluation"},
                      {"step", evaluation.step()},
                      {"accuracy", or_null(evaluation.accuracy())},
                      {"loss", or_null(evaluation.loss())}}});
  if (log.ended)
    lines.push_back(
        {log.ended->t(),
         {{"type", "run_ended"}, {"ok", log.ended->ok()}, {"reason", log.ended->reason()}}});
  if (!log.complete())
    lines.push_back({log.end_ns(),
                     {{"type", "incomplete"},
                      {"reason", log.damaged            ? "the record stream is damaged"
                                 : log.incomplete_bytes ? "the record stream was cut off"
                                                        : "the run did not end"}}});

  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.t < b.t; });
  std::string text;
  for (const Line& line : lines) {
    // The time goes first, with its nine decimals, which no JSON library would keep.
    const std::string body =
        line.json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    text += "{\"t\":" + seconds_text(line.t) + "," + body.substr(1) + "\n";
  }
  return text;
}

}  // namespace orrery::results
