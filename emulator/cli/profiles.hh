// Measured kernel times: taken once a host, kept in the cache, stored with each run.
#pragma once

#include <string>

#include "emulator/cli/progress.hh"
#include "emulator/plan/run_plan.hh"

namespace orrery::cli {

/// For `cost: profile`, puts the host's profile of the plan's kernels into its specification: from
/// the run in `from` if that is not empty, else from the cache, else measured now.
void apply_profile(emulator::RunPlan& plan, const std::string& from, ProgressDisplay& display,
                   bool measure_again = false);

}  // namespace orrery::cli
