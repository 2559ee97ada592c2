// One run, whatever keeps its time: its directory is made, its records are read as they grow, and
// when it ends its results are written. What differs between engines, its subclasses do.
#pragma once

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/plan/run_plan.hh"
#include "emulator/results/description.hh"
#include "proto/record_stream.hh"

namespace orrery::emulator {

/// What can be seen of a run while it goes on.
struct Progress {
  Instant emulated;
  double host_seconds = 0;
  std::string phase;  ///< of the newest row: "evaluation", "step", "update"
  std::int64_t step = 0;
  double loss = std::nan("");  ///< NaN: none yet
  bool started = false;        ///< past the barrier
  bool reported = false;       ///< its end, by itself
};

class EngineRun {
 public:
  virtual ~EngineRun() = default;
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;

  /// True once what runs has ended and the results are written. Ends the run itself when nothing
  /// has moved for limits.watchdog of host time.
  bool poll();
  /// Ends it now; what there is stays readable and is marked incomplete.
  void stop(const std::string& reason);

  const Progress& progress() const { return progress_; }
  const std::string& name() const { return plan_.spec.run; }
  const std::string& directory() const { return directory_; }
  /// What went wrong outside of the records (a kernel that died, a watchdog), else empty.
  const std::string& failure() const { return failure_; }

 protected:
  using HostClock = std::chrono::steady_clock;

  /// Makes `directory` and writes what will run into it. `observer` (may be null) gets each record
  /// as it becomes visible.
  EngineRun(const std::string& engine, RunPlan plan, const std::string& directory,
            const std::vector<std::string>& command_line, RecordSink* observer);

  /// Whether it has ended. Throws Error if it ended otherwise than by its own report.
  virtual bool ended() = 0;
  /// Looks whether what runs still moves, and calls stop() with the reason if not.
  virtual void watch() = 0;
  virtual void kill() = 0;
  /// After the end and before the results: what the engine has to add to `description_`.
  virtual void complete() {}

  /// What a node was last heard to do; empty: nothing.
  std::string last_seen(int rank) const;
  /// Called when records came, or something new has begun.
  virtual void moved() { moved_ = HostClock::now(); }
  double seconds_since_moved() const;

  RunPlan plan_;
  std::string directory_;
  results::RunDescription description_;
  Progress progress_;
  std::string failure_;

 private:
  void read_records();
  void read(const wire::Record& record);
  void evaluate();
  void finish();

  RecordSink* observer_;
  std::map<std::string, std::unique_ptr<RecordFileReader>> readers_;
  std::map<int, std::string> last_seen_;  ///< node → what its newest record says
  HostClock::time_point begun_;
  HostClock::time_point moved_;
  bool ended_ = false;
};

/// Puts the parts of a run's records together into records.bin; harmless if that was done before.
void merge_records(const std::string& run_directory);

}  // namespace orrery::emulator
