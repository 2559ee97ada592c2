// One run in the live engine: a controller as a process of this host, which makes the network,
// starts the agents and keeps the timeline by the host's clock; watched through the run directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/child.hh"
#include "emulator/engine/engine_run.hh"
#include "netshape/open_backend.hh"

namespace orrery::emulator {

struct LiveOptions {
  std::vector<std::string> command_line;
  netshape::BackendKind backend = netshape::BackendKind::kernel;
  std::string leases;  ///< folder of core leases, the same for all runs of this host
};

class LiveRun final : public EngineRun {
 public:
  LiveRun(RunPlan plan, const std::string& directory, LiveOptions options, RecordSink* observer);

 private:
  bool ended() override;
  void watch() override;
  void kill() override { child_->kill(); }
  void complete() override;

  std::string log_path() const { return directory_ + "/live.log"; }

  std::optional<Child> child_;
  int status_ = 0;  ///< of the controller, once it has ended
};

}  // namespace orrery::emulator
