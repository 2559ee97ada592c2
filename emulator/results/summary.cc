#include "emulator/results/summary.hh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "emulator/results/curves.hh"

namespace orrery::results {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

nlohmann::ordered_json or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// The lowest objective loss of all evaluations; without evaluations, the mean over the nodes of
// each node's last training loss.
double final_loss(const RunLog& log) {
  double best = none;
  std::map<int, double> last;
  for (const wire::Step& step : log.steps) {
    if (!std::isfinite(step.loss())) continue;
    if (step.phase() == "evaluation")
      best = std::isnan(best) ? step.loss() : std::min(best, step.loss());
    else if (step.phase() == "step" || step.phase() == "update")
      last[step.node()] = step.loss();
  }
  if (!std::isnan(best) || last.empty()) return best;
  double sum = 0;
  for (const auto& [node, loss] : last) sum += loss;
  return sum / static_cast<double>(last.size());
}

}  // namespace

RunSummary summarise(const RunDescription& description, const RunLog& log, const Verdict& verdict) {
  RunSummary summary;
  summary.name = !description.name.empty() || !log.started ? description.name : log.started->run();
  summary.strategy = !description.strategy.empty() || !log.started ? description.strategy
                                                                   : log.started->strategy();
  summary.seed = log.started ? log.started->seed() : description.seed;
  summary.verdict = verdict.grade;
  summary.accuracy = log.evaluations.empty() ? none : log.evaluations.back().accuracy();
  summary.loss = final_loss(log);
  summary.emulated_seconds = static_cast<double>(log.end_ns()) / 1e9;
  summary.host_seconds = description.host_seconds;

  std::set<std::int64_t> evaluations;
  std::set<std::int64_t> steps;
  std::int64_t updates = 0;
  for (const wire::Step& step : log.steps) {
    if (step.phase() == "evaluation") evaluations.insert(step.step());
    if (step.phase() == "step") steps.insert(step.step());
    if (step.phase() == "update") ++updates;
  }
  summary.evaluations = static_cast<std::int64_t>(evaluations.size());
  summary.iterations = static_cast<std::int64_t>(steps.size()) + updates;
  if (summary.iterations == 0) summary.iterations = summary.evaluations;

  for (const wire::NodeTotals& totals : log.totals) {
    summary.samples_forward += totals.samples_forward();
    summary.samples_backward += totals.samples_backward();
  }
  for (const wire::Traffic& traffic : log.traffic) summary.bytes[traffic.kind()] += traffic.bytes();
  summary.wire_bytes = WireBytes(log).total();
  summary.uncharged_ratio = uncharged_ratio(log).value_or(none);
  summary.profile_hash = description.profile_hash;
  return summary;
}

nlohmann::ordered_json to_json(const RunSummary& summary) {
  nlohmann::ordered_json bytes = nlohmann::ordered_json::object();
  for (const auto& [kind, count] : summary.bytes) bytes[kind] = count;
  return {{"name", summary.name},
          {"strategy", summary.strategy},
          {"seed", summary.seed},
          {"verdict", to_string(summary.verdict)},
          {"accuracy", or_null(summary.accuracy)},
          {"loss", or_null(summary.loss)},
          {"emulated_seconds", summary.emulated_seconds},
          {"host_seconds", summary.host_seconds},
          {"iterations", summary.iterations},
          {"evaluations", summary.evaluations},
          {"samples_forward", summary.samples_forward},
          {"samples_backward", summary.samples_backward},
          {"bytes", bytes},
          {"wire_bytes", summary.wire_bytes},
          {"uncharged_ratio", or_null(summary.uncharged_ratio)},
          {"profile_hash", summary.profile_hash}};
}

nlohmann::ordered_json to_json(std::span<const RunSummary> runs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RunSummary& run : runs) list.push_back(to_json(run));
  nlohmann::ordered_json object;
  object["runs"] = list;
  return object;
}

}  // namespace orrery::results
