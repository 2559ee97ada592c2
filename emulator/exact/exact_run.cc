#include "emulator/exact/exact_run.hh"

#include <filesystem>

#include "agents/activity.hh"
#include "base/error.hh"
#include "emulator/engine/host.hh"
#include "emulator/results/directory.hh"
#include "emulator/uml/guest_memory.hh"

namespace orrery::emulator {

namespace fs = std::filesystem;

ExactRun::ExactRun(RunPlan plan, const std::string& directory, ExactOptions options,
                   RecordSink* observer)
    : EngineRun("exact", std::move(plan), directory, options.command_line, observer),
      options_(std::move(options)),
      links_(options_.link_cache, plan_.network, options_.kernel),
      looked_(HostClock::now()) {
  fs::create_directories(directory_ + "/guest");
  description_.versions["kernel"] = fs::path(options_.kernel).parent_path().filename();
  results::write_description(directory_, description_);
  measuring_links_ = options_.measure_links || !links_.load(links_file());
  boot(measuring_links_ ? std::vector<std::string>{"--links"} : std::vector<std::string>{});
}

std::string ExactRun::links_file() const { return directory_ + "/records/links.bin"; }

void ExactRun::boot(const std::vector<std::string>& controller_arguments) {
  uml::GuestSpec guest;
  guest.kernel = options_.kernel;
  guest.init = sibling_program("orrery-init");
  guest.memory = plan_.guest_memory;
  guest.state_dir = directory_ + "/guest";
  guest.folders = {{"run", directory_}, {"programs", program_folder()}};
  guest.argv = {uml::folder_path("programs") + "/orrery-controller", uml::folder_path("run")};
  guest.argv.insert(guest.argv.end(), controller_arguments.begin(), controller_arguments.end());
  guest.environment = compute_environment();
  guest.environment.push_back("ORRERY_TIME_TRAVEL=1");  // for agents/interposed.cc
  guest.cwd = uml::folder_path("run");
  guest.entropy = plan_.spec.seed;
  guest_ = std::make_unique<uml::Guest>(guest);
  run_queue_.emplace(guest_->pid());
  moved();
}

std::string ExactRun::who_does_what() const {
  std::vector<std::string> names;
  for (const NodeSpec& node : plan_.spec.nodes) names.push_back(node.name);
  std::map<int, Activity> activities;
  for (const std::vector<char>& page : uml::guest_pages(guest_->pid(), Activity::mark())) {
    const auto activity = Activity::read(page);
    if (!activity) continue;
    // Memory of a process that was killed may still be there.
    const auto known = activities.find(activity->rank);
    if (known == activities.end() || known->second.incarnation < activity->incarnation)
      activities.insert_or_assign(activity->rank, *activity);
  }
  std::string text;
  for (int rank = 0; rank < static_cast<int>(names.size()); ++rank) {
    text += text.empty() ? "" : "; ";
    const auto activity = activities.find(rank);
    if (activity != activities.end()) {
      text += activity->second.describe(names);
      continue;
    }
    const std::string seen = last_seen(rank);
    text += names[static_cast<std::size_t>(rank)] +
            (seen.empty() ? " has not begun" : " was last heard of at " + seen);
  }
  return text;
}

void ExactRun::moved() {
  EngineRun::moved();
  starved_ = 0;
}

void ExactRun::watch() {
  const auto now = HostClock::now();
  if (now - looked_ >= std::chrono::seconds(1)) {
    looked_ = now;
    starved_ += run_queue_->sample();
  }
  const double standstill = std::max(0.0, seconds_since_moved() - starved_);
  longest_standstill_ = std::max(longest_standstill_, standstill);
  if (standstill < plan_.experiment.limits.watchdog.in_seconds()) return;
  stop("emulated time has stood still at " + std::to_string(progress_.emulated.in_seconds()) +
       " s for " + std::to_string(static_cast<int>(standstill)) +
       " s in which the host let it run (limits.watchdog): " + who_does_what());
}

bool ExactRun::ended() {
  const std::optional<int> status = guest_->poll();
  if (!status) return false;
  if (!measuring_links_) return true;
  if (*status != 0)
    throw Error("the links could not be measured: " + uml::end_of_log(guest_->log_path()));
  links_.store(links_file());
  measuring_links_ = false;
  boot({});
  return false;
}

void ExactRun::complete() {
  fs::remove(directory_ + "/links.part");
  description_.watchdog_share = longest_standstill_ / plan_.experiment.limits.watchdog.in_seconds();
}

}  // namespace orrery::emulator
