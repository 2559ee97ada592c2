// An experiment's network as netshape takes it, and which of its links an event touches. Pure.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/experiment.hh"
#include "netshape/topology.hh"

namespace orrery::config {

netshape::LinkSpec link_spec(const Link& link);
/// The other way, for figures that are built in.
Link link_of(const netshape::LinkSpec& spec);

/// Throws ValueError if the shape does not fit the nodes.
netshape::Topology topology_of(const Network& network);

/// A direction of a link.
struct Ends {
  std::string from;
  std::string to;
  friend auto operator<=>(const Ends&, const Ends&) = default;
};

/// What the file says of that direction, before any event. Throws std::logic_error for one that the
/// network has not.
const Link& link_between(const Network& network, const Ends& ends);

/// The directions of a node's links: `up` leaves it, `down` comes to it.
std::vector<Ends> directions_of(const netshape::Topology& topology, const std::string& node,
                                Direction direction);

/// All that a change of links touches, by node in the event's order, or between its two ends; those
/// only that the network has.
std::vector<Ends> touched(const netshape::Topology& topology, const Event& event,
                          const LinkChange& change);

/// The same network with every link spelt out.
Network spelt_out(const Network& network);

}  // namespace orrery::config
