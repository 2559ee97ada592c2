// The strategies that come with Orrery, one file each; registry.cc lists them.
#pragma once

#include <cstdint>

#include "agents/strategy.hh"

namespace orrery {

StrategyInfo sgd_allreduce_info();
StrategyInfo parameter_server_info();

/// The step at which `steps` or `epochs` end a run of gradient steps; the largest number if
/// neither.
std::int64_t last_step(const StopRule& stop, std::int64_t steps_per_epoch);

}  // namespace orrery
