// Who is wired to whom: a graph of nodes and switches whose edges carry one LinkSpec a direction.
#pragma once

#include <string>
#include <vector>

#include "netshape/link.hh"

namespace orrery::netshape {

/// An edge between two vertices. `name` names both directions; a direction is written "a->b".
struct Link {
  std::string a;
  std::string b;
  LinkSpec a_to_b;
  LinkSpec b_to_a;
};

struct Topology {
  std::vector<std::string> nodes;     ///< emulated machines
  std::vector<std::string> switches;  ///< forward, and take no time of their own
  std::vector<Link> links;
};

struct StarNode {
  std::string name;
  LinkSpec up;    ///< from the node to the switch
  LinkSpec down;  ///< from the switch to the node
};

/// Every node on one switch.
Topology star(std::vector<StarNode> nodes, const std::string& switch_name = "switch");

/// The name of a direction: "from->to".
std::string link_name(const std::string& from, const std::string& to);

/// Everything wrong with it: repeated or unknown names, vertices that no path joins, and each
/// link's own problems with the link's name before them.
std::vector<std::string> problems(const Topology& topology);

}  // namespace orrery::netshape
