#include "emulator/engine/engine_run.hh"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "emulator/config/load.hh"
#include "emulator/engine/host.hh"
#include "emulator/results/directory.hh"

namespace orrery::emulator {
namespace {

namespace fs = std::filesystem;

results::RunDescription describe(const RunPlan& plan, const std::string& engine,
                                 const std::vector<std::string>& command_line,
                                 const std::string& experiment_text) {
  results::RunDescription description;
  description.name = plan.spec.run;
  description.strategy = plan.spec.strategy;
  description.seed = plan.spec.seed;
  description.engine = engine;
  description.cost = plan.spec.profile.empty() ? "model" : "profile";
  description.experiment = experiment_text;
  description.command_line = command_line;
  description.versions["orrery"] = ORRERY_VERSION;
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

EngineRun::EngineRun(const std::string& engine, RunPlan plan, const std::string& directory,
                     const std::vector<std::string>& command_line, RecordSink* observer)
    : plan_(std::move(plan)),
      directory_(fs::absolute(directory)),
      observer_(observer),
      begun_(HostClock::now()),
      moved_(begun_) {
  fs::create_directories(directory_ + "/records");
  const std::string experiment = config::to_yaml(plan_.experiment, strategy_catalog());
  write_file(directory_ + "/experiment.yaml", experiment);
  write_file(directory_ + "/spec.json", to_json(plan_.spec).dump(1) + "\n");
  description_ = describe(plan_, engine, command_line, experiment);
}

void EngineRun::read(const wire::Record& record) {
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
  } else if (record.has_run_ended()) {
    progress_.reported = true;
  } else if (record.has_span()) {
    last_seen_[record.span().node()] = record.span().category() + " " + record.span().name();
  }
}

void EngineRun::read_records() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(directory_ + "/records")) {
    auto& reader = readers_[entry.path()];
    if (!reader) reader = std::make_unique<RecordFileReader>(entry.path());
    count += reader->poll([this](const wire::Record& record) { read(record); });
  }
  if (count > 0) moved();
}

std::string EngineRun::last_seen(int rank) const {
  const auto seen = last_seen_.find(rank);
  return seen == last_seen_.end() ? "" : seen->second;
}

double EngineRun::seconds_since_moved() const {
  return std::chrono::duration<double>(HostClock::now() - moved_).count();
}

bool EngineRun::poll() {
  if (ended_) return true;
  progress_.host_seconds = std::chrono::duration<double>(HostClock::now() - begun_).count();
  bool over = true;
  try {
    over = ended();
  } catch (const Error& error) {
    failure_ = error.what();
  }
  read_records();
  if (over)
    finish();
  else
    watch();
  return ended_;
}

void EngineRun::stop(const std::string& reason) {
  if (ended_) return;
  failure_ = reason;
  kill();
  finish();
}

void EngineRun::evaluate() {
  const Finished evaluated =
      run_program({sibling_program("orrery-agent"), "evaluate", directory_ + "/spec.json",
                   "--records", directory_ + "/records"});
  if (evaluated.status == 0)
    description_.versions["libtorch"] = version_of_libtorch(evaluated.output);
  else if (failure_.empty())
    failure_ = "test accuracy could not be evaluated: " + evaluated.errors;
}

void EngineRun::finish() {
  ended_ = true;
  read_records();
  description_.host_seconds = std::chrono::duration<double>(HostClock::now() - begun_).count();
  complete();
  evaluate();
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
