#include "emulator/live/live_run.hh"

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/engine/host.hh"
#include "emulator/results/directory.hh"

namespace orrery::emulator {
namespace {

std::string end_of(const std::string& path) {
  constexpr std::size_t limit = 1500;
  std::string text = read_file(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() <= limit ? text : "…" + text.substr(text.size() - limit);
}

}  // namespace

LiveRun::LiveRun(RunPlan plan, const std::string& directory, LiveOptions options,
                 RecordSink* observer)
    : EngineRun("live", std::move(plan), directory, options.command_line, observer) {
  description_.host["network"] = to_string(options.backend);
  results::write_description(directory_, description_);
  child_.emplace(ChildSpec{{sibling_program("orrery-controller"), directory_, "--live", "--backend",
                            to_string(options.backend), "--leases", options.leases},
                           compute_environment(),
                           log_path()});
}

bool LiveRun::ended() {
  const std::optional<int> status = child_->poll();
  status_ = status.value_or(0);
  return status.has_value();
}

void LiveRun::complete() {
  if (failure_.empty() && !progress_.reported)
    failure_ =
        "the controller ended with status " + std::to_string(status_) + ": " + end_of(log_path());
}

void LiveRun::watch() {
  // The controller writes a record now and then whatever the agents do.
  const double standstill = seconds_since_moved();
  if (standstill < plan_.experiment.limits.watchdog.in_seconds()) return;
  stop("nothing was heard of the controller for " + std::to_string(static_cast<int>(standstill)) +
       " s (limits.watchdog); see live.log");
}

}  // namespace orrery::emulator
