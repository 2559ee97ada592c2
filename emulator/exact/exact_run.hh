// One run in the exact engine: a time-travel kernel with its own controller inside, watched from
// outside through the run directory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/engine_run.hh"
#include "emulator/exact/link_cache.hh"
#include "emulator/uml/guest.hh"
#include "emulator/uml/run_queue.hh"

namespace orrery::emulator {

struct ExactOptions {
  std::string kernel;
  std::vector<std::string> command_line;
  std::string link_cache;      ///< folder of link checks, by plan
  bool measure_links = false;  ///< also where an earlier run measured them
};

class ExactRun final : public EngineRun {
 public:
  /// Makes `directory` and boots: first, unless an earlier run of the same plan has done so, a
  /// guest that measures the links and ends. One of its own, so that measuring or not changes
  /// nothing in the run.
  ExactRun(RunPlan plan, const std::string& directory, ExactOptions options, RecordSink* observer);

 private:
  bool ended() override;
  /// Time that the guest spent ready to run while the host ran others does not count.
  void watch() override;
  void kill() override { guest_->kill(); }
  void moved() override;
  void complete() override;

  std::string links_file() const;
  void boot(const std::vector<std::string>& controller_arguments);
  /// What each node does now, by its activity page; of a node that has none, what was last heard.
  std::string who_does_what() const;

  ExactOptions options_;
  LinkCache links_;
  HostClock::time_point looked_;  ///< when the watchdog last looked at the host's run queue
  double starved_ = 0;  ///< seconds since it moved that the guest was ready and did not run
  double longest_standstill_ = 0;
  bool measuring_links_ = false;  ///< the guest is the one that only does that
  std::unique_ptr<uml::Guest> guest_;
  std::optional<uml::RunQueueWait> run_queue_;
};

}  // namespace orrery::emulator
