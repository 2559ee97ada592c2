// One run, planned: what each agent is told, what the network is, what happens when. Pure but for
// the look at the data set's folder.
#pragma once

#include <string>
#include <vector>

#include "agents/run_spec.hh"
#include "emulator/config/experiment.hh"
#include "emulator/config/strategy_catalog.hh"
#include "emulator/plan/timeline.hh"
#include "netshape/plan.hh"

namespace orrery::emulator {

struct RunPlan {
  config::Experiment experiment;  ///< with this run only
  RunSpec spec;
  Placement placement;
  netshape::Plan network;
  std::vector<TimedAction> timeline;
  Bytes guest_memory;  ///< for the exact engine
};

/// `experiment` holds exactly one run. Throws ValueError or Error with what would be right.
RunPlan plan_run(const config::Experiment& experiment);

/// `orrery plan`: everything that was derived, in words.
std::string to_text(const RunPlan& plan);

/// The strategies of agents/, as the reader of experiment files wants them.
config::StrategyCatalog strategy_catalog();

}  // namespace orrery::emulator
