// Measures kernels on this host: the code behind `orrery profile`.
#pragma once

#include <span>

#include "agents/profile.hh"

namespace orrery {

/// Runs the real code of each kernel on synthetic data, many times in turn, within about `budget`
/// of host time (a few runs each are made in any case), and keeps median and 95th percentile of the
/// thread's CPU time. Messages of a range of sizes are added, so that any size can be interpolated.
/// Throws Error for an operation that no code is known for: see register_profiled().
Profile measure(const ModelSpec& model, std::span<const KernelSpec> kernels, Duration budget);

}  // namespace orrery
