// Ring all-reduce: reduce-scatter, then all-gather, each of n − 1 steps in which every node sends
// one n-th of the vector to its right neighbour.
//
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 69(2), 2009. Time of S bytes over links of delay α and rate B: 2 (n − 1) (α + S / (n B)).
#pragma once

#include <cstdint>

#include "agents/node.hh"

namespace orrery {

/// Sums `values` over all nodes, in place, on every node alike: each element is added up in the
/// same order everywhere, so the results are equal bit for bit. Parts of `values` are sent without
/// a copy: do not write to it before the *next* collective has returned. Channels `tag` and `tag` +
/// 1 are used.
void ring_all_reduce(Node& node, Tensor& values, MessageKind kind, std::uint32_t tag);

/// The kernels and neighbours of it, for plans.
std::vector<KernelSpec> ring_kernels(int size, std::int64_t count);

}  // namespace orrery
