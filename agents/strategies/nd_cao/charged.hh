// What the parts of a move cost: the kernels under which they are charged, and the code with which
// a profile measures them.
#pragma once

#include <cstdint>
#include <vector>

#include "agents/kernel.hh"
#include "agents/strategies/nd_cao/block.hh"

namespace orrery::nd_cao {

/// The fit to a window that holds `entries`. Up to 32 every size is a kernel of its own; in longer
/// windows sizes are rounded up by at most a 32nd of the window, so that a profile stays short.
KernelSpec fit_kernel(const BlockSettings& settings, std::int64_t entries);
/// All kernels that fit_kernel() gives.
std::vector<KernelSpec> fit_kernels(const BlockSettings& settings);

/// Drawing and estimating all candidates, and drawing the `top` ones again, each of which counts as
/// a candidate: nearly all of a candidate's cost is the draw.
KernelSpec score_kernel(const BlockSettings& settings);

/// Says how `orrery profile` measures an estimator's fit, candidates and fill: on a Block.
void register_profiled_kernels();

}  // namespace orrery::nd_cao
