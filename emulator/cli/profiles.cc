#include "emulator/cli/profiles.hh"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "agents/profile.hh"
#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/engine/host.hh"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void use_stored(emulator::RunPlan& plan, const std::string& from) {
  for (const std::string& path : {from + "/" + plan.spec.run + "/spec.json", from + "/spec.json"}) {
    if (!fs::exists(path)) continue;
    const RunSpec stored = run_spec_from_json(nlohmann::json::parse(read_file(path)));
    if (stored.run != plan.spec.run) continue;
    plan.spec.profile = stored.profile;
    plan.spec.profile_hash = stored.profile_hash;
    return;
  }
  throw Error(from + " holds no specification of run '" + plan.spec.run + "'", ExitCode::usage);
}

}  // namespace

void apply_profile(emulator::RunPlan& plan, const std::string& from, ProgressDisplay& display,
                   bool measure_again) {
  if (plan.experiment.cluster.cost != config::Cost::profile) return;
  if (!from.empty()) {
    use_stored(plan, from);
    return;
  }
  char scratch[] = "/tmp/orrery-spec-XXXXXX";
  if (!::mkdtemp(scratch)) throw_errno("make a temporary folder");
  const std::string spec = std::string(scratch) + "/spec.json";
  write_file(spec, to_json(plan.spec).dump());
  display.say(plan.spec.run + ": profile of its kernels on this host");
  std::vector<std::string> argv{emulator::sibling_program("orrery-agent"), "profile", spec,
                                "--folder", emulator::cache_folder() + "/profiles"};
  if (measure_again) argv.push_back("--again");
  const emulator::Finished finished = emulator::run_program(argv);
  fs::remove_all(scratch);
  if (finished.status != 0) throw Error("the profile could not be taken: " + finished.errors);
  const std::string path = trimmed(finished.output);
  const Profile profile = profile_from_json(read_file(path), path);
  plan.spec.profile = profile.entries;
  plan.spec.profile_hash = profile.hash();
}

}  // namespace orrery::cli
