#include "emulator/results/directory.hh"

#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/results/csv.hh"
#include "emulator/results/events.hh"
#include "emulator/results/report.hh"
#include "emulator/results/run_log.hh"
#include "emulator/results/trace.hh"

namespace orrery::results {
namespace {

struct Run {
  RunDescription description;
  RunLog log;
};

template <typename Json>
std::string text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Run read_run(const std::string& directory) {
  return {read_description(directory), load(directory + "/records.bin")};
}

RunSummary write_run(const std::string& directory, const Run& run) {
  const Verdict verdict = judge(run.description, run.log);
  const RunSummary summary = summarise(run.description, run.log, verdict);
  nlohmann::ordered_json json(to_json(run.description));
  json["verdict"] = to_json(verdict);
  json["summary"] = to_json(summary);
  write_file(directory + "/steps.csv", steps_csv(run.log));
  write_file(directory + "/links.csv", links_csv(run.log));
  write_file(directory + "/evaluations.csv", evaluations_csv(run.log));
  write_file(directory + "/traffic.csv", traffic_csv(run.log));
  write_file(directory + "/events.jsonl", events_jsonl(run.log));
  write_file(directory + "/trace.json", trace_json(run.log));
  const RunView view{&run.description, &run.log};
  write_file(directory + "/report.html", report_html(summary.name, {&view, 1}));
  write_file(directory + "/run.json", text(json));
  return summary;
}

}  // namespace

void write_description(const std::string& directory, const RunDescription& description) {
  write_file(directory + "/run.json", text(nlohmann::ordered_json(to_json(description))));
}

RunDescription read_description(const std::string& directory) {
  const std::string path = directory + "/run.json";
  try {
    return description_from_json(nlohmann::json::parse(read_file(path)));
  } catch (const nlohmann::json::exception& e) {
    throw Error(path + " is not JSON (" + e.what() + "); run the experiment again");
  }
}

RunSummary write_results(const std::string& directory) {
  return write_run(directory, read_run(directory));
}

std::vector<RunSummary> write_suite(const std::string& directory, const std::string& title,
                                    const std::vector<std::string>& run_directories) {
  std::deque<Run> runs;
  std::vector<RunSummary> summaries;
  std::vector<RunView> views;
  for (const std::string& path : run_directories) {
    runs.push_back(read_run(path));
    summaries.push_back(write_run(path, runs.back()));
    views.push_back({&runs.back().description, &runs.back().log});
  }
  write_file(directory + "/summary.json", text(to_json(std::span<const RunSummary>(summaries))));
  write_file(directory + "/report.html", report_html(title, views));
  return summaries;
}

}  // namespace orrery::results
