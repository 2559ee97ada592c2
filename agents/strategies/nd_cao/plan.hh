// The pure half of nd_cao: which node holds what, and every kernel that it will charge.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "agents/strategies/nd_cao/settings.hh"
#include "agents/strategy.hh"

namespace orrery::nd_cao {

/// Throws PlacementError for what cannot be.
Placement make_plan(const ClusterView& cluster, const WorkloadView& workload,
                    const Settings& settings, std::uint64_t seed);

/// What finding the principal components of samples × features costs: kernels, and how often each.
/// In pieces small enough to be measured as they run, in cache.
std::vector<std::pair<KernelSpec, std::int64_t>> component_kernels(std::int64_t samples,
                                                                   std::int64_t features,
                                                                   std::int64_t rank);

}  // namespace orrery::nd_cao
