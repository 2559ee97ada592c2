#include "emulator/results/csv.hh"

#include <map>
#include <set>
#include <vector>

#include "emulator/results/numbers.hh"

namespace orrery::results {
namespace {

// "nan" would be read as text by many a spreadsheet: a figure that there is not is an empty field.
std::string figure(double value) { return value != value ? "" : number_text(value); }

std::string row(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i ? "," : "") + csv_field(fields[i]);
  return line + "\n";
}

}  // namespace

std::string steps_csv(const RunLog& log) {
  std::set<std::string> extras;
  for (const wire::Step& step : log.steps)
    for (const auto& [name, unused] : step.extra()) extras.insert(name);

  std::vector<std::string> header{"t", "node", "step", "phase", "loss", "samples"};
  header.insert(header.end(), extras.begin(), extras.end());
  std::string text = row(header);
  for (const wire::Step& step : log.steps) {
    std::vector<std::string> fields{seconds_text(step.t()),      log.node_name(step.node()),
                                    std::to_string(step.step()), step.phase(),
                                    figure(step.loss()),         std::to_string(step.samples())};
    for (const std::string& name : extras) {
      const auto at = step.extra().find(name);
      fields.push_back(at == step.extra().end() ? "" : figure(at->second));
    }
    text += row(fields);
  }
  return text;
}

std::string links_csv(const RunLog& log) {
  std::map<std::string, wire::LinkCounters> counters;
  for (const wire::LinkCounters& record : log.link_counters) counters[record.link()] = record;
  std::map<std::string, std::vector<const wire::LinkCheck*>> checks;
  for (const wire::LinkCheck& check : log.link_checks) checks[check.link()].push_back(&check);
  for (const auto& [link, unused] : counters) checks[link];

  std::string text = row({"link", "from", "to", "property", "asked", "applied", "measured",
                          "verdict", "packets", "bytes", "dropped"});
  for (const auto& [link, properties] : checks) {
    const LinkEnds ends = link_ends(link);
    const auto carried = counters.find(link);
    const auto emit = [&](std::vector<std::string> fields) {
      if (carried == counters.end())
        fields.insert(fields.end(), {"", "", ""});
      else
        fields.insert(fields.end(), {std::to_string(carried->second.packets()),
                                     std::to_string(carried->second.bytes()),
                                     std::to_string(carried->second.dropped())});
      text += row(fields);
    };
    if (properties.empty()) emit({link, ends.from, ends.to, "", "", "", "", "not checked"});
    for (const wire::LinkCheck* check : properties)
      emit({link, ends.from, ends.to, check->property(), figure(check->asked()),
            figure(check->applied()), figure(check->measured()), check->verdict()});
  }
  return text;
}

std::string evaluations_csv(const RunLog& log) {
  std::string text = row({"t", "step", "accuracy", "loss"});
  for (const wire::Evaluation& record : log.evaluations)
    text += row({seconds_text(record.t()), std::to_string(record.step()), figure(record.accuracy()),
                 figure(record.loss())});
  return text;
}

std::string traffic_csv(const RunLog& log) {
  std::string text = row({"node", "peer", "kind", "messages", "bytes"});
  for (const wire::Traffic& record : log.traffic)
    text += row({log.node_name(record.node()), log.node_name(record.peer()), record.kind(),
                 std::to_string(record.messages()), std::to_string(record.bytes())});
  return text;
}

}  // namespace orrery::results
