#include "emulator/config/network.hh"

#include <algorithm>
#include <stdexcept>

namespace orrery::config {

netshape::LinkSpec link_spec(const Link& link) {
  netshape::LinkSpec spec;
  spec.delay = link.delay;
  spec.jitter = link.jitter;
  spec.distribution = link.distribution;
  spec.keep_order = link.keep_order;
  spec.rate = link.rate;
  if (link.loss_model)
    spec.burst_loss = link.loss_model;
  else if (link.loss_burst > 1 && link.loss.value > 0)
    spec.burst_loss = netshape::gilbert(link.loss, link.loss_burst);
  else
    spec.loss = link.loss;
  spec.duplicate = link.duplicate;
  spec.corrupt = link.corrupt;
  spec.reorder = link.reorder;
  spec.layer = link.layer;
  if (!link.rate) return spec;  // nothing queues before a line that takes no time
  if (const auto* time = std::get_if<Duration>(&link.queue)) spec.queue = *time;
  if (const auto* bytes = std::get_if<Bytes>(&link.queue)) spec.queue = *bytes;
  if (const auto* bdp = std::get_if<BdpMultiple>(&link.queue))
    spec.queue = netshape::BdpMultiple{bdp->factor};
  return spec;
}

Link link_of(const netshape::LinkSpec& spec) {
  Link link;
  link.delay = spec.delay;
  link.jitter = spec.jitter;
  link.distribution = spec.distribution;
  link.keep_order = spec.keep_order;
  link.rate = spec.rate;
  link.loss = spec.loss;
  link.loss_model = spec.burst_loss;
  link.duplicate = spec.duplicate;
  link.corrupt = spec.corrupt;
  link.reorder = spec.reorder;
  link.layer = spec.layer;
  if (const auto* time = std::get_if<Duration>(&spec.queue)) link.queue = *time;
  if (const auto* bytes = std::get_if<Bytes>(&spec.queue)) link.queue = *bytes;
  if (const auto* bdp = std::get_if<netshape::BdpMultiple>(&spec.queue))
    link.queue = BdpMultiple{bdp->factor};
  return link;
}

netshape::Topology topology_of(const Network& network) {
  if (network.wires.empty()) {
    std::vector<netshape::StarNode> nodes;
    for (const Access& access : network.access)
      nodes.push_back({access.node, link_spec(access.up), link_spec(access.down)});
    return netshape::make_shape(network.topology, std::move(nodes), link_spec(network.trunk),
                                network.arity);
  }
  netshape::Topology topology;
  for (const Access& access : network.access) topology.nodes.push_back(access.node);
  topology.switches = network.switches;
  for (const Wire& wire : network.wires)
    topology.links.push_back({wire.a, wire.b, link_spec(wire.forth), link_spec(wire.back)});
  return topology;
}

const Link& link_between(const Network& network, const Ends& ends) {
  for (const Wire& wire : network.wires) {
    if (wire.a == ends.from && wire.b == ends.to) return wire.forth;
    if (wire.b == ends.from && wire.a == ends.to) return wire.back;
  }
  if (!network.wires.empty())
    throw std::logic_error("no link leads from " + ends.from + " to " + ends.to);
  for (const Access& access : network.access) {
    if (access.node == ends.from) return access.up;
    if (access.node == ends.to) return access.down;
  }
  return network.trunk;
}

std::vector<Ends> directions_of(const netshape::Topology& topology, const std::string& node,
                                Direction direction) {
  std::vector<Ends> found;
  for (const netshape::Link& link : topology.links) {
    if (link.a != node && link.b != node) continue;
    const std::string& other = link.a == node ? link.b : link.a;
    if (direction != Direction::down) found.push_back({node, other});
    if (direction != Direction::up) found.push_back({other, node});
  }
  return found;
}

std::vector<Ends> touched(const netshape::Topology& topology, const Event& event,
                          const LinkChange& change) {
  std::vector<Ends> found;
  for (const std::string& node : event.nodes)
    for (Ends& ends : directions_of(topology, node, change.direction))
      if (std::find(found.begin(), found.end(), ends) == found.end())
        found.push_back(std::move(ends));
  if (change.between)
    for (Ends& ends : directions_of(topology, change.between->first, change.direction))
      if (ends.from == change.between->second || ends.to == change.between->second)
        found.push_back(std::move(ends));
  return found;
}

Network spelt_out(const Network& network) {
  const netshape::Topology topology = topology_of(network);
  Network all;
  for (const Access& access : network.access) all.access.push_back({access.node, {}, {}});
  all.switches = topology.switches;
  for (const netshape::Link& link : topology.links)
    all.wires.push_back({link.a, link.b, link_between(network, {link.a, link.b}),
                         link_between(network, {link.b, link.a})});
  return all;
}

}  // namespace orrery::config
