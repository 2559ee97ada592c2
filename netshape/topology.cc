#include "netshape/topology.hh"

#include <map>
#include <set>

namespace orrery::netshape {
namespace {

using Neighbours = std::map<std::string, std::vector<std::string>>;

std::set<std::string> reachable(const Neighbours& neighbours, const std::string& start) {
  std::set<std::string> seen{start};
  std::vector<std::string> open{start};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    const auto found = neighbours.find(at);
    if (found == neighbours.end()) continue;
    for (const std::string& next : found->second)
      if (seen.insert(next).second) open.push_back(next);
  }
  return seen;
}

}  // namespace

std::string link_name(const std::string& from, const std::string& to) { return from + "->" + to; }

Topology star(std::vector<StarNode> nodes, const std::string& switch_name) {
  Topology topology;
  topology.switches.push_back(switch_name);
  for (StarNode& node : nodes) {
    topology.nodes.push_back(node.name);
    topology.links.push_back({node.name, switch_name, node.up, node.down});
  }
  return topology;
}

std::vector<std::string> problems(const Topology& topology) {
  std::vector<std::string> found;
  std::set<std::string> known;
  const auto add = [&](const std::string& name, const char* kind) {
    if (name.empty())
      found.push_back(std::string("a ") + kind + " has no name; give each a name of its own");
    else if (!known.insert(name).second)
      found.push_back(std::string(kind) + " '" + name +
                      "' appears twice; give each node and switch a name of its own");
  };
  if (topology.nodes.empty()) found.push_back("there is no node; name at least one");
  for (const std::string& name : topology.nodes) add(name, "node");
  for (const std::string& name : topology.switches) add(name, "switch");

  Neighbours neighbours;
  std::set<std::string> directions;
  for (const Link& link : topology.links) {
    for (const std::string* end : {&link.a, &link.b})
      if (known.count(*end) == 0)
        found.push_back("link " + link.a + " - " + link.b + " ends at '" + *end +
                        "', which is no node and no switch; name it under nodes or switches");
    if (link.a == link.b)
      found.push_back("link " + link.a + " - " + link.b +
                      " joins a vertex to itself; name two different ends");
    if (!directions.insert(link_name(link.a, link.b)).second ||
        !directions.insert(link_name(link.b, link.a)).second)
      found.push_back("link " + link.a + " - " + link.b +
                      " appears twice; one link joins two ends");
    for (const std::string& problem : problems(link.a_to_b))
      found.push_back("link " + link_name(link.a, link.b) + ": " + problem);
    for (const std::string& problem : problems(link.b_to_a))
      found.push_back("link " + link_name(link.b, link.a) + ": " + problem);
    neighbours[link.a].push_back(link.b);
    neighbours[link.b].push_back(link.a);
  }
  if (!found.empty()) return found;

  const std::set<std::string> joined = reachable(neighbours, topology.nodes.front());
  for (const std::string& name : topology.nodes)
    if (joined.count(name) == 0)
      found.push_back("no path joins " + topology.nodes.front() + " and " + name +
                      "; add a link between them or to a common switch");
  return found;
}

}  // namespace orrery::netshape
