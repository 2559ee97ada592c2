// orrery report DIR, orrery clean [DIR…]

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/cli/command.hh"
#include "emulator/config/load.hh"
#include "emulator/engine/engine_run.hh"
#include "emulator/plan/run_plan.hh"
#include "emulator/results/directory.hh"
#include "emulator/results/table.hh"
#include "emulator/uml/guest.hh"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& directory) { return fs::exists(directory / "run.json"); }

// A run that still goes on has a guest whose process works in its folder.
bool is_alive(const fs::path& directory) {
  const fs::path pid_file = directory / "guest" / "pid";
  if (!fs::exists(pid_file)) return false;
  std::string pid = read_file(pid_file);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return uml::is_guest_of(std::atoi(pid.c_str()), directory / "guest");
}

// The runs of a suite in the order of its file; of a single run itself.
std::vector<std::string> run_directories(const fs::path& directory) {
  if (is_run(directory)) return {directory};
  std::vector<std::string> runs;
  if (fs::exists(directory / "experiment.yaml")) {
    const auto loaded = config::load(directory / "experiment.yaml", emulator::strategy_catalog());
    for (const config::Run& run : loaded.experiment.runs)
      if (is_run(directory / run.name)) runs.push_back(directory / run.name);
  }
  if (runs.empty())
    throw Error(directory.string() +
                    " is not the directory of a run or a suite: it holds no run.json "
                    "and no experiment.yaml with runs",
                ExitCode::usage);
  return runs;
}

int report(const std::string& name) {
  const fs::path directory = fs::absolute(name).lexically_normal();
  const std::vector<std::string> runs = run_directories(directory);
  for (const std::string& run : runs)
    if (!is_alive(run)) emulator::merge_records(run);
  std::vector<results::RunSummary> summaries;
  if (is_run(directory))
    summaries.push_back(results::write_results(directory));
  else
    summaries = results::write_suite(directory, directory.filename(), runs);
  std::cout << results::summary_table(summaries)
            << "\nreport: " << (directory / "report.html").string() << "\n";
  return 0;
}

// Removes what a killed run left in its folder; results stay.
bool clean_run(const fs::path& directory) {
  if (is_alive(directory)) {
    std::cout << directory.string() << ": goes on; left alone\n";
    return false;
  }
  bool found = false;
  for (const char* name :
       {"control.sock", "links.part", "guest/guest", "guest/pid", "guest/boot", "guest/status"})
    found |= fs::remove_all(directory / name) > 0;
  if (fs::exists(directory / "records")) {
    emulator::merge_records(directory);
    found = true;
  }
  return found;
}

int clean(std::vector<std::string> names) {
  if (names.empty() && fs::exists("results"))
    for (const auto& entry : fs::directory_iterator("results")) names.push_back(entry.path());
  int cleaned = 0;
  for (const std::string& name : names) {
    const fs::path directory = fs::absolute(name).lexically_normal();
    if (!fs::exists(directory))
      throw Error(name + " does not exist; name a run's or a suite's directory", ExitCode::usage);
    std::vector<std::string> runs;
    try {
      runs = run_directories(directory);
    } catch (const Error&) {
      std::cout << directory.string() << ": not a run's directory; left alone\n";
      continue;
    }
    for (const std::string& run : runs) cleaned += clean_run(run) ? 1 : 0;
  }
  std::cout << cleaned << (cleaned == 1 ? " run" : " runs") << " cleaned\n";
  return 0;
}

}  // namespace

void add_results(CLI::App& app, Chosen& chosen) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* reporter =
      app.add_subcommand("report", "make a run's tables, trace and report again from its records");
  reporter->add_option("dir", *directory, "a run's or suite's directory")->required();
  reporter->callback(
      [&chosen, directory] { chosen.action = [directory] { return report(*directory); }; });

  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* cleaner = app.add_subcommand("clean", "remove what killed runs left in their folders");
  cleaner->add_option("dir", *names, "run or suite directories (default: all in results/)");
  cleaner->callback([&chosen, names] { chosen.action = [names] { return clean(*names); }; });
}

}  // namespace orrery::cli
