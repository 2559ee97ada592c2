// Which layers a node holds, and how its parameters are cut into blocks. Two things: a block never
// spans nodes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agents/strategies/nd_cao/settings.hh"
#include "agents/strategy.hh"

namespace orrery::nd_cao {

/// Layers [first, last) for each node, in order, each with at least one parametric layer. A layer
/// without parameters stays with the parametric one before it, so what is sent has passed its
/// activation. Balanced by the slowest node's time for its layers, or by count, or as the cluster's
/// stage_layers say. Throws PlacementError if there are more nodes than parametric layers.
std::vector<std::pair<int, int>> cut_layers(const ClusterView& cluster, const ModelSpec& model,
                                            bool by_flops);

/// The blocks of layers [first, last): disjoint, and together all of their parameters. Their ranges
/// ascend. A part that would be empty is left out.
std::vector<BlockSpec> cut_blocks(const ModelSpec& model, int first, int last, Partition partition,
                                  int parts, std::uint64_t seed);

/// Throws PlacementError unless the blocks are disjoint, lie within [begin, end) and cover it.
void check_blocks(std::span<const BlockSpec> blocks, std::int64_t begin, std::int64_t end);

}  // namespace orrery::nd_cao
