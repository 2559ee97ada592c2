// orrery profile FILE

#include <iostream>
#include <memory>

#include "emulator/cli/command.hh"
#include "emulator/cli/profiles.hh"
#include "emulator/config/load.hh"
#include "emulator/plan/run_plan.hh"

namespace orrery::cli {
namespace {

int profile(const std::string& file, bool again) {
  const config::Loaded loaded = config::load(file, emulator::strategy_catalog());
  ProgressDisplay display(false);
  for (const config::Run& run : loaded.experiment.runs) {
    emulator::RunPlan plan = emulator::plan_run(loaded.experiment.select(run.name));
    plan.experiment.cluster.cost = config::Cost::profile;
    apply_profile(plan, "", display, again);
    std::cout << run.name << ": profile " << plan.spec.profile_hash << "\n";
    for (const ProfileCost::Entry& entry : plan.spec.profile) {
      const double median = entry.median.in_milliseconds();
      std::cout << "    " << entry.kernel.key() << ": " << median << " ms, p95 "
                << entry.p95.in_milliseconds() << " ms";
      if (entry.kernel.flops > 0 && median > 0)
        std::cout << ", " << entry.kernel.flops / median * 1e-6 << " GFLOP/s";
      std::cout << "\n";
    }
  }
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, Chosen& chosen) {
  const auto file = std::make_shared<std::string>();
  const auto again = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("profile", "measure an experiment's kernels on this host (cached)");
  command->add_option("file", *file, "the experiment, YAML")->required();
  command->add_flag("--again", *again, "measure even if there is a profile");
  command->callback(
      [&chosen, file, again] { chosen.action = [file, again] { return profile(*file, *again); }; });
}

}  // namespace orrery::cli
