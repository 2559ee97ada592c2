// orrery run FILE, orrery rerun DIR

#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "emulator/cli/command.hh"
#include "emulator/cli/suite.hh"
#include "emulator/config/load.hh"
#include "emulator/plan/run_plan.hh"
#include "emulator/results/table.hh"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  std::string file;
  std::string out;
  std::string engine = "auto";
  std::string backend = "auto";
  std::vector<std::string> only;
  std::vector<std::string> set;
  std::string seed;
  std::vector<std::string> without;
  std::string metrics;
  int jobs = 0;
  bool measure_links = false;
  bool json = false;
  bool quiet = false;
};

// results/NAME-1, -2, …: the first that is not there.
std::string next_directory(const std::string& name) {
  for (int n = 1;; ++n) {
    const std::string directory = "results/" + name + "-" + std::to_string(n);
    if (!fs::exists(directory)) return directory;
  }
}

results::TableStyle table_style() {
  results::TableStyle style;
  winsize size{};
  style.colour = ::isatty(STDOUT_FILENO) != 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 60) style.width = size.ws_col;
  return style;
}

void check_engine(const std::string& engine) {
  if (engine != "auto" && engine != "exact" && engine != "live")
    throw Error("engine '" + engine + "' is not in this version; write exact, live or auto",
                ExitCode::usage);
}

int run_and_report(const config::Experiment& experiment, const RunArguments& arguments,
                   const std::vector<std::string>& command_line, const std::string& profile_from) {
  check_engine(arguments.engine);
  SuiteOptions options;
  options.directory = arguments.out.empty() ? next_directory(experiment.name) : arguments.out;
  options.command_line = command_line;
  if (arguments.engine == "live") options.engine = "live";
  options.backend = arguments.backend;
  options.metrics_address = arguments.metrics;
  options.jobs = arguments.jobs;
  options.measure_links = arguments.measure_links;
  options.quiet = arguments.quiet;
  options.profile_from = profile_from;
  const SuiteOutcome outcome = run_suite(experiment, options);
  if (arguments.json)
    std::cout << results::to_json(std::span<const results::RunSummary>(outcome.runs)).dump(2)
              << "\n";
  else
    std::cout << results::summary_table(outcome.runs, table_style())
              << "\nreport: " << fs::absolute(options.directory).lexically_normal().string()
              << "/report.html\n";
  if (outcome.interrupted) return static_cast<int>(ExitCode::interrupted);
  return static_cast<int>(outcome.failed ? ExitCode::run_failed : ExitCode::ok);
}

// With only these runs, each a run's or a group's name, in the file's order.
config::Experiment select_all(const config::Experiment& experiment,
                              const std::vector<std::string>& names) {
  if (names.empty()) return experiment;
  config::Experiment selected = experiment;
  selected.runs.clear();
  for (const std::string& name : names)
    for (const config::Run& run : experiment.select(name).runs) selected.runs.push_back(run);
  return selected;
}

int run(const RunArguments& arguments, const std::vector<std::string>& command_line) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.seed.empty()) overrides.push_back("seed=" + arguments.seed);
  const config::Loaded loaded =
      config::load(arguments.file, emulator::strategy_catalog(), overrides);
  for (const std::string& warning : loaded.warnings) std::cerr << warning << "\n";
  config::Experiment experiment = select_all(loaded.experiment, arguments.only);
  for (const std::string& event : arguments.without) experiment = experiment.without(event);
  return run_and_report(experiment, arguments, command_line, "");
}

int rerun(const RunArguments& arguments, const std::vector<std::string>& command_line) {
  const std::string file = arguments.file + "/experiment.yaml";
  if (!fs::exists(file))
    throw Error(arguments.file + " is not a run's directory: it holds no experiment.yaml",
                ExitCode::usage);
  const config::Loaded loaded = config::load(file, emulator::strategy_catalog());
  const bool profiled = loaded.experiment.cluster.cost == config::Cost::profile;
  return run_and_report(loaded.experiment, arguments, command_line,
                        profiled ? arguments.file : std::string());
}

void add_common(CLI::App& command, RunArguments& arguments) {
  command.add_option("--engine", arguments.engine,
                     "exact: in the time-travel kernel (the default, auto, is that); live: by this "
                     "host's clock");
  command
      .add_option("--backend", arguments.backend,
                  "of the live engine: kernel (netem), fabric (a user-space switch), auto")
      ->check(CLI::IsMember({"kernel", "fabric", "auto"}));
  command.add_option("--out", arguments.out, "results go here (default: results/NAME-N)");
  command.add_option("--metrics", arguments.metrics,
                     "serve Prometheus metrics at ADDRESS:PORT while it runs");
  command.add_option("--jobs", arguments.jobs, "runs at a time (default: one a processor)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--measure-links", arguments.measure_links,
                   "measure the links again, also if an earlier run of the same plan did");
  command.add_flag("--json", arguments.json, "print one JSON object instead of the table");
  command.add_flag("--quiet", arguments.quiet, "no progress on stderr");
}

}  // namespace

void add_run(CLI::App& app, const Context& context, Chosen& chosen) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run an experiment");
  command->add_option("file", arguments->file, "the experiment, YAML")->required();
  command->add_option("--only", arguments->only, "only the run of that name (may be repeated)");
  command->add_option("--set", arguments->set, "another value, as in cluster.cost=model");
  command->add_option("--seed", arguments->seed, "another seed");
  command->add_option("--without", arguments->without, "without that event of the timeline");
  add_common(*command, *arguments);
  command->callback([&chosen, arguments, &context] {
    chosen.action = [arguments, &context] { return run(*arguments, context.command_line); };
  });

  const auto again = std::make_shared<RunArguments>();
  CLI::App* repeat = app.add_subcommand("rerun", "repeat a run from what its directory holds");
  repeat->add_option("dir", again->file, "a run's or suite's directory")->required();
  add_common(*repeat, *again);
  repeat->callback([&chosen, again, &context] {
    chosen.action = [again, &context] { return rerun(*again, context.command_line); };
  });
}

}  // namespace orrery::cli
