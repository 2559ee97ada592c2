// One run in the exact engine: a time-travel kernel with its own controller inside, watched from
// outside through the run directory.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/plan/run_plan.hh"
#include "emulator/results/description.hh"
#include "emulator/uml/guest.hh"
#include "proto/record_stream.hh"

namespace orrery::emulator {

/// What can be seen of a run while it goes on.
struct Progress {
  Instant emulated;
  double host_seconds = 0;
  std::string phase;  ///< of the newest row: "evaluation", "step", "update"
  std::int64_t step = 0;
  double loss = 0;       ///< NaN: none yet
  bool started = false;  ///< past the barrier
};

class ExactRun {
 public:
  /// Makes `directory` and boots. `observer` (may be null) gets each record as it becomes visible.
  ExactRun(RunPlan plan, std::string directory, const std::string& kernel,
           std::vector<std::string> command_line, RecordSink* observer);

  /// True once the guest has ended and the results are written. Ends the run itself when emulated
  /// time has stood still for limits.watchdog of host time.
  bool poll();
  /// Ends it now; what there is stays readable and is marked incomplete.
  void stop(const std::string& reason);

  const Progress& progress() const { return progress_; }
  const std::string& name() const { return plan_.spec.run; }
  const std::string& directory() const { return directory_; }
  /// What went wrong outside of the records (a kernel that died, a watchdog), else empty.
  const std::string& failure() const { return failure_; }

 private:
  using HostClock = std::chrono::steady_clock;

  void read_records();
  void watch();
  void finish();
  /// What each node does now, by its activity page; of a node that has none, what was last heard.
  std::string who_does_what() const;

  RunPlan plan_;
  std::string directory_;
  RecordSink* observer_;
  results::RunDescription description_;
  std::map<std::string, std::unique_ptr<RecordFileReader>> readers_;
  std::map<int, std::string> last_seen_;  ///< node → what its newest record says
  Progress progress_;
  HostClock::time_point begun_;
  HostClock::time_point moved_;  ///< when records last grew
  double longest_standstill_ = 0;
  std::string failure_;
  std::unique_ptr<uml::Guest> guest_;
  bool ended_ = false;
};

/// Puts the parts of a run's records together into records.bin; harmless if that was done before.
void merge_records(const std::string& run_directory);

}  // namespace orrery::emulator
