// From what a user asks to what a kernel is told. Pure: no clock, no file, no kernel; the same
// topology and seed give the same plan on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netshape/netem.hh"
#include "netshape/topology.hh"

namespace orrery::netshape {

/// A number that we worked out, and why it is what it is (one line).
struct Derived {
  std::int64_t value = 0;
  std::string why;
};

/// Where a direction is shaped: never on a node's own egress, for there TCP sees the queue.
enum class Place {
  egress,   ///< of the sending switch's port
  ingress,  ///< of the receiving end, through an ifb device
};

/// One direction of a link. A packet passes `path` (loss, delay), then `line` (queue, rate): see
/// docs/links.md for why in this order.
struct LinkPlan {
  std::string name;  ///< "from->to"
  std::string from;
  std::string to;
  LinkSpec spec;
  Place place = Place::egress;
  Netem path;
  std::optional<Netem> line;  ///< absent without a rate, and where one queue must do both
  std::uint64_t seed = 0;     ///< from (experiment seed, name)
  Derived queue_bytes;
  Derived queue_packets;  ///< how many full frames the queue holds
  Derived path_packets;   ///< the limit of `path`
  Derived overhead;       ///< bytes that the rate counts and Linux does not, a frame
  Derived frame_time_ns;  ///< of a full frame on the line
  Derived tcp_goodput;    ///< bit/s of payload that one TCP flow can reach here
};

/// Which neighbour leads to a node.
struct Route {
  std::string to;
  std::string via;
};

struct VertexPlan {
  std::string name;
  bool is_switch = false;
  std::string address;        ///< IPv4, a /32
  std::vector<Route> routes;  ///< to each node, ordered by `to`
  Derived gso_segments;       ///< segments in the largest super-packet that it may send
  Derived gso_bytes;
  Derived socket_buffer;  ///< bytes, for each socket of this node; the largest of its paths'
};

/// An ordered pair of nodes.
struct PathPlan {
  std::string from;
  std::string to;
  std::vector<std::string> links;
  Duration one_way;             ///< the sum of delays; without serialisation
  Duration round_trip;          ///< there and back, without serialisation
  std::optional<BitRate> rate;  ///< of the bottleneck as asked for; none: no link has one
  std::optional<BitRate> tcp_goodput;
  Derived bdp;            ///< bytes in flight that fill the bottleneck
  Derived socket_buffer;  ///< bytes
};

struct Plan {
  Topology topology;
  std::uint64_t seed = 0;
  std::int64_t mtu = 1500;           ///< bytes of IP packet
  std::vector<VertexPlan> vertices;  ///< nodes in their order, then switches
  std::vector<LinkPlan> links;       ///< both directions of each link, in the topology's order
  std::vector<PathPlan> paths;       ///< by `from`, then `to`, in the nodes' order

  const VertexPlan& vertex(const std::string& name) const;
  const LinkPlan& link(const std::string& name) const;
  const PathPlan& path(const std::string& from, const std::string& to) const;
};

/// From the change's instant on, `link` ("from->to") is as `spec` says.
struct LinkChange {
  std::string link;
  LinkSpec spec;
};

/// Throws ValueError with all problems of the topology. `timeline` holds the changes that are to
/// come: super-packets and socket buffers are sized for the most demanding of them.
Plan plan(const Topology& topology, std::uint64_t seed, std::span<const LinkChange> timeline = {});

/// The plan after a batch of changes: new figures for the links named, all else as it was. Throws
/// ValueError with all problems.
Plan changed(const Plan& before, std::span<const LinkChange> changes);

/// The time from the first bit sent to the last bit received of a packet of `ip_bytes`, with empty
/// queues and mean delays.
Duration crossing_time(const Plan& plan, const PathPlan& path, std::int64_t ip_bytes);

/// Tables for people; and JSON, with every reason, for programs.
std::string to_text(const Plan& plan);
std::string to_json(const Plan& plan);

}  // namespace orrery::netshape
