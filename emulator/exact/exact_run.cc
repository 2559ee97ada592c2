#include "emulator/exact/exact_run.hh"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agents/activity.hh"
#include "agents/profile.hh"
#include "base/error.hh"
#include "emulator/config/load.hh"
#include "emulator/exact/host.hh"
#include "emulator/results/directory.hh"
#include "emulator/uml/guest_memory.hh"

namespace orrery::emulator {
namespace {

namespace fs = std::filesystem;

results::RunDescription describe(const RunPlan& plan, const std::string& kernel,
                                 std::vector<std::string> command_line,
                                 const std::string& experiment_text) {
  results::RunDescription description;
  description.name = plan.spec.run;
  description.strategy = plan.spec.strategy;
  description.seed = plan.spec.seed;
  description.engine = "exact";
  description.cost = plan.spec.profile.empty() ? "model" : "profile";
  description.experiment = experiment_text;
  description.command_line = std::move(command_line);
  description.versions["orrery"] = ORRERY_VERSION;
  description.versions["kernel"] = fs::path(kernel).parent_path().filename();
  description.host["processor"] = processor_name();
  description.host["processors"] = std::to_string(processor_count());
  description.host["system"] = system_name();
  for (const NodeSpec& node : plan.spec.nodes) description.speeds[node.name] = node.speed;
  description.profile_hash = plan.spec.profile_hash;
  double spread = 1;
  for (const ProfileCost::Entry& entry : plan.spec.profile)
    if (entry.median.ns > 0)
      spread = std::max(spread,
                        static_cast<double>(entry.p95.ns) / static_cast<double>(entry.median.ns));
  if (!plan.spec.profile.empty()) description.profile_spread = spread;
  return description;
}

// Of what `orrery-agent evaluate` prints, "libtorch 1.13.1, OpenBLAS 0.3.21 Zen": the part behind
// the name.
std::string version_of_libtorch(std::string text) {
  constexpr std::string_view name = "libtorch ";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.starts_with(name) ? text.substr(name.size()) : text;
}

}  // namespace

void merge_records(const std::string& run_directory) {
  const fs::path parts = fs::path(run_directory) / "records";
  if (!fs::exists(parts)) return;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(parts))
    if (entry.path().extension() == ".bin") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::string all;
  // Delimited records: streams put one after another are a stream. A part that was cut off is taken
  // up to the cut.
  for (const fs::path& path : paths) {
    RecordFileReader reader(path);
    reader.poll([](const wire::Record&) {});
    std::string text = read_file(path);
    text.resize(text.size() - reader.incomplete_bytes());
    all += text;
  }
  write_file(fs::path(run_directory) / "records.bin", all);
  fs::remove_all(parts);
}

ExactRun::ExactRun(RunPlan plan, std::string directory, ExactOptions options, RecordSink* observer)
    : plan_(std::move(plan)),
      directory_(fs::absolute(directory)),
      options_(std::move(options)),
      links_(options_.link_cache, plan_.network, options_.kernel),
      observer_(observer),
      begun_(HostClock::now()),
      moved_(begun_),
      looked_(begun_) {
  progress_.loss = std::nan("");
  fs::create_directories(directory_ + "/records");
  fs::create_directories(directory_ + "/guest");
  const std::string experiment = config::to_yaml(plan_.experiment, strategy_catalog());
  write_file(directory_ + "/experiment.yaml", experiment);
  write_file(directory_ + "/spec.json", to_json(plan_.spec).dump(1) + "\n");
  description_ = describe(plan_, options_.kernel, options_.command_line, experiment);
  results::write_description(directory_, description_);
  measuring_links_ = options_.measure_links || !links_.load(links_file());
  boot(measuring_links_ ? std::vector<std::string>{"--links"} : std::vector<std::string>{});
}

std::string ExactRun::links_file() const { return directory_ + "/records/links.bin"; }

void ExactRun::boot(std::vector<std::string> controller_arguments) {
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
  moved_ = HostClock::now();
}

void ExactRun::read_records() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(directory_ + "/records")) {
    auto& reader = readers_[entry.path()];
    if (!reader) reader = std::make_unique<RecordFileReader>(entry.path());
    count += reader->poll([&](const wire::Record& record) {
      if (observer_) observer_->write(record);
      if (record.has_heartbeat()) {
        progress_.emulated = std::max(progress_.emulated, Instant{record.heartbeat().t()});
      } else if (record.has_node_state()) {
        progress_.started |= record.node_state().state() == "running";
        last_seen_[record.node_state().node()] = record.node_state().state();
      } else if (record.has_step() && record.step().phase() != "move") {
        const wire::Step& row = record.step();
        progress_.emulated = std::max(progress_.emulated, Instant{row.t()});
        if (row.step() >= progress_.step) {
          progress_.step = row.step();
          progress_.phase = row.phase();
          progress_.loss = row.loss();
        }
        last_seen_[row.node()] = row.phase() + " " + std::to_string(row.step());
      } else if (record.has_span()) {
        last_seen_[record.span().node()] = record.span().category() + " " + record.span().name();
      }
    });
  }
  if (count > 0) {
    moved_ = HostClock::now();
    starved_ = 0;
  }
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
    const auto seen = last_seen_.find(rank);
    text += names[static_cast<std::size_t>(rank)] +
            (seen == last_seen_.end() ? " has not begun" : " was last heard of at " + seen->second);
  }
  return text;
}

void ExactRun::watch() {
  const auto now = HostClock::now();
  if (now - looked_ >= std::chrono::seconds(1)) {
    looked_ = now;
    starved_ += run_queue_->sample();
  }
  const double standstill =
      std::max(0.0, std::chrono::duration<double>(now - moved_).count() - starved_);
  longest_standstill_ = std::max(longest_standstill_, standstill);
  if (standstill < plan_.experiment.limits.watchdog.in_seconds()) return;
  stop("emulated time has stood still at " + std::to_string(progress_.emulated.in_seconds()) +
       " s for " + std::to_string(static_cast<int>(standstill)) +
       " s in which the host let it run (limits.watchdog): " + who_does_what());
}

bool ExactRun::poll() {
  if (ended_) return true;
  progress_.host_seconds = std::chrono::duration<double>(HostClock::now() - begun_).count();
  std::optional<int> status;
  try {
    status = guest_->poll();
  } catch (const Error& error) {
    failure_ = error.what();
    status = 1;
  }
  read_records();
  if (!status) {
    watch();
    return ended_;
  }
  if (measuring_links_ && failure_.empty()) {
    if (*status == 0) {
      links_.store(links_file());
      measuring_links_ = false;
      boot({});
      return false;
    }
    failure_ = "the links could not be measured: " + uml::end_of_log(guest_->log_path());
  }
  finish();
  return true;
}

void ExactRun::stop(const std::string& reason) {
  if (ended_) return;
  failure_ = reason;
  guest_->kill();
  finish();
}

void ExactRun::finish() {
  ended_ = true;
  read_records();
  fs::remove(directory_ + "/links.part");
  description_.host_seconds = std::chrono::duration<double>(HostClock::now() - begun_).count();
  description_.watchdog_share = longest_standstill_ / plan_.experiment.limits.watchdog.in_seconds();
  const Finished evaluated =
      run_program({sibling_program("orrery-agent"), "evaluate", directory_ + "/spec.json",
                   "--records", directory_ + "/records"});
  if (evaluated.status == 0)
    description_.versions["libtorch"] = version_of_libtorch(evaluated.output);
  else if (failure_.empty())
    failure_ = "test accuracy could not be evaluated: " + evaluated.errors;
  if (!failure_.empty()) {
    // The controller did not live to say so itself.
    RecordFileWriter records(directory_ + "/records/observer.bin");
    wire::Record record;
    record.mutable_run_ended()->set_t(progress_.emulated.ns);
    record.mutable_run_ended()->set_ok(false);
    record.mutable_run_ended()->set_reason(failure_);
    records.write(record);
  }
  merge_records(directory_);
  results::write_description(directory_, description_);
}

}  // namespace orrery::emulator
