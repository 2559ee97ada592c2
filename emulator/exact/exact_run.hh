// One run in the exact engine: a time-travel kernel with its own controller inside, watched from
// outside through the run directory.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/exact/link_cache.hh"
#include "emulator/plan/run_plan.hh"
#include "emulator/results/description.hh"
#include "emulator/uml/guest.hh"
#include "emulator/uml/run_queue.hh"
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

struct ExactOptions {
  std::string kernel;
  std::vector<std::string> command_line;
  std::string link_cache;      ///< folder of link checks, by plan
  bool measure_links = false;  ///< also where an earlier run measured them
};

class ExactRun {
 public:
  /// Makes `directory` and boots: first, unless an earlier run of the same plan has done so, a
  /// guest that measures the links and ends. One of its own, so that measuring or not changes
  /// nothing in the run. `observer` (may be null) gets each record as it becomes visible.
  ExactRun(RunPlan plan, std::string directory, ExactOptions options, RecordSink* observer);

  /// True once the guest has ended and the results are written. Ends the run itself when emulated
  /// time has stood still for limits.watchdog of host time; time that the guest spent ready to run
  /// while the host ran others does not count.
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

  std::string links_file() const;
  void boot(std::vector<std::string> controller_arguments);
  void read_records();
  void watch();
  void finish();
  /// What each node does now, by its activity page; of a node that has none, what was last heard.
  std::string who_does_what() const;

  RunPlan plan_;
  std::string directory_;
  ExactOptions options_;
  LinkCache links_;
  RecordSink* observer_;
  results::RunDescription description_;
  std::map<std::string, std::unique_ptr<RecordFileReader>> readers_;
  std::map<int, std::string> last_seen_;  ///< node → what its newest record says
  Progress progress_;
  HostClock::time_point begun_;
  HostClock::time_point moved_;   ///< when records last grew
  HostClock::time_point looked_;  ///< when the watchdog last looked at the host's run queue
  double starved_ = 0;            ///< seconds since then that the guest was ready and did not run
  double longest_standstill_ = 0;
  std::string failure_;
  bool measuring_links_ = false;  ///< the guest is the one that only does that
  std::unique_ptr<uml::Guest> guest_;
  std::optional<uml::RunQueueWait> run_queue_;
  bool ended_ = false;
};

/// Puts the parts of a run's records together into records.bin; harmless if that was done before.
void merge_records(const std::string& run_directory);

}  // namespace orrery::emulator
