// Topologies by name: who is wired to whom, made from a list of nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netshape/topology.hh"

namespace orrery::netshape {

/// Every node has one link, to a switch; the shape says which switches there are and how they are
/// joined. n nodes; `arity` where one is needed.
enum class Shape {
  star,      ///< one switch
  chain,     ///< a switch a node, each joined to the next
  ring,      ///< the same, and the last to the first
  mesh,      ///< a switch a node, each joined to each
  dumbbell,  ///< two switches with half of the nodes each
  tree,  ///< switches with `arity` nodes each, and above them switches with `arity` switches each
  fat_tree,  ///< arity k: k pods of k/2 edge and k/2 aggregation switches, k²/4 core switches
  bigraph,   ///< `arity` switches in two halves, each of one half joined to each of the other
};

/// Makes a shape. Switches are named for their place ("s0", "core1", "left", "pod0-edge1"); trunks
/// are the links between them, the same both ways. Throws ValueError if the nodes do not fit or the
/// arity is wrong for the shape, with what would be right.
///
/// fat_tree: Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture",
/// SIGCOMM 2008. bigraph: Dong et al., "EFLOPS: algorithm and system co-design for a high
/// performance distributed training platform", HPCA 2020.
Topology make_shape(Shape shape, std::vector<StarNode> nodes, const LinkSpec& trunk,
                    std::int64_t arity);

/// Whether a shape takes an arity, and what it means there; empty if not.
std::string_view arity_meaning(Shape shape);

/// The switch that a node is wired to. Throws std::logic_error where it has not exactly one.
const std::string& switch_of(const Topology& topology, const std::string& node);

}  // namespace orrery::netshape
