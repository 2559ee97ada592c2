// orrery check, plan, schema, init, list: what needs no run.

#include <fcntl.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "agents/data/dataset.hh"
#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/cli/command.hh"
#include "emulator/cli/profiles.hh"
#include "emulator/config/device_profiles.hh"
#include "emulator/config/experiment_schema.hh"
#include "emulator/config/load.hh"
#include "emulator/config/starters.hh"
#include "emulator/plan/run_plan.hh"

namespace orrery::cli {
namespace {

struct FileArguments {
  std::string file;
  std::vector<std::string> set;
  std::string only;
};

config::Experiment read(const FileArguments& arguments) {
  const config::Loaded loaded =
      config::load(arguments.file, emulator::strategy_catalog(), arguments.set);
  for (const std::string& warning : loaded.warnings) std::cerr << warning << "\n";
  return arguments.only.empty() ? loaded.experiment : loaded.experiment.select(arguments.only);
}

int check(const FileArguments& arguments) {
  const config::Experiment experiment = read(arguments);
  for (const config::Run& run : experiment.runs) emulator::plan_run(experiment.select(run.name));
  std::cout << arguments.file << ": " << experiment.cluster.nodes.size() << " nodes, "
            << experiment.runs.size() << (experiment.runs.size() == 1 ? " run" : " runs")
            << ", nothing wrong\n";
  return 0;
}

int plan(const FileArguments& arguments) {
  const config::Experiment experiment = read(arguments);
  ProgressDisplay display(false);
  bool first = true;
  for (const config::Run& run : experiment.runs) {
    emulator::RunPlan planned = emulator::plan_run(experiment.select(run.name));
    apply_profile(planned, "", display);
    std::cout << (first ? "" : "\n") << emulator::to_text(planned);
    first = false;
  }
  return 0;
}

int init(const std::string& name, const std::string& out) {
  const config::Starter& starter = config::starter(name);
  const std::string path = out.empty() ? name + ".yaml" : out;
  if (std::filesystem::exists(path))
    throw Error(path + " exists; name another with --out", ExitCode::usage);
  write_file(path, starter.text);
  std::cout << path << " written; run it with: orrery run " << path << "\n";
  return 0;
}

void list_strategies() {
  for (const StrategyInfo& info : strategies()) {
    std::cout << info.name << ": " << info.description << " [" << info.paper << "]\n";
    for (const OptionSpec& option : info.options)
      std::cout << "    " << option.name << ": " << option.help << "\n";
  }
}

void list_devices() {
  for (const config::DeviceProfile& device : config::device_profiles())
    std::cout << device.name << ": " << device.description << ", "
              << config::to_string(device.flops) << ", "
              << config::to_string(device.memory_bandwidth) << ", " << to_string(device.memory)
              << " [" << device.source << "]\n";
}

int list(const std::string& what) {
  if (what == "strategies") list_strategies();
  if (what == "devices") list_devices();
  if (what == "models")
    std::cout << "mlp: a multi-layer perceptron, `layers` its widths, tanh or relu\n"
                 "lenet5: two 5×5 convolutions with pooling, three linear layers [LeCun et al., "
                 "Proc. IEEE 86(11), 1998]\n";
  if (what == "datasets")
    std::cout << "fashion-mnist: 60,000 + 10,000 grey images of clothes, 28×28, ten classes; "
                 "package dataset-fashion-mnist [Xiao et al., arXiv 1708.07747]\n";
  return 0;
}

void add_file_command(CLI::App& app, Chosen& chosen, const char* name, const char* help,
                      int (*action)(const FileArguments&)) {
  const auto arguments = std::make_shared<FileArguments>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("file", arguments->file, "the experiment, YAML")->required();
  command->add_option("--set", arguments->set, "another value, as in cluster.cost=model");
  command->add_option("--only", arguments->only, "only the run of that name");
  command->callback([&chosen, arguments, action] {
    chosen.action = [arguments, action] { return action(*arguments); };
  });
}

}  // namespace

void add_inspect(CLI::App& app, Chosen& chosen) {
  add_file_command(app, chosen, "check", "say everything that is wrong with an experiment", check);
  add_file_command(app, chosen, "plan", "print everything that is derived from an experiment",
                   plan);

  app.add_subcommand("schema", "print the JSON Schema of experiment files")->callback([&chosen] {
    chosen.action = [] {
      std::cout << config::experiment_json_schema(emulator::strategy_catalog()).dump(2) << "\n";
      return 0;
    };
  });

  const auto name = std::make_shared<std::string>("quickstart");
  const auto out = std::make_shared<std::string>();
  CLI::App* starter = app.add_subcommand("init", "write a commented experiment to start from");
  std::string names;
  for (const config::Starter& s : config::starters())
    names += (names.empty() ? "" : ", ") + std::string(s.name);
  starter->add_option("name", *name, "one of " + names);
  starter->add_option("--out", *out, "the file (default: NAME.yaml)");
  starter->callback(
      [&chosen, name, out] { chosen.action = [name, out] { return init(*name, *out); }; });

  const auto what = std::make_shared<std::string>();
  CLI::App* lister = app.add_subcommand("list", "what there is to choose from");
  lister->add_option("what", *what, "strategies, models, devices or datasets")
      ->required()
      ->check(CLI::IsMember({"strategies", "models", "devices", "datasets"}));
  lister->callback([&chosen, what] { chosen.action = [what] { return list(*what); }; });
}

}  // namespace orrery::cli
