// What a link does to packets, in one direction, as a user asks for it. docs/links.md explains each
// property and the order in which they act.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.hh"
#include "netshape/burst_loss.hh"

namespace orrery::netshape {

/// Which bytes a rate counts.
enum class Layer {
  wire,  ///< the frame with its preamble, checksum and gap (24 B more), as a NIC of that speed does
  l2,    ///< the frame from its Ethernet header to its payload's end, as Linux counts
};

/// How a delay varies around its mean.
enum class Distribution {
  uniform,       ///< evenly in delay ± jitter
  normal,        ///< jitter is the standard deviation; cut at four of them
  pareto,        ///< shape 3: rarely early, now and then very late; likewise
  paretonormal,  ///< a quarter of the one, three quarters of the other; likewise
};

/// A queue of `factor` × rate × the longest round trip that crosses the link.
struct BdpMultiple {
  double factor = 1;
  friend auto operator<=>(const BdpMultiple&, const BdpMultiple&) = default;
};

/// The room before the line: automatic (see docs/links.md), a size, a time at the link's rate, or a
/// multiple of the bandwidth-delay product. Arrivals that find it full are dropped.
using Queue = std::variant<std::monostate, Bytes, Duration, BdpMultiple>;

/// One direction of a link. The default is a perfect wire.
struct LinkSpec {
  Duration delay;
  Duration jitter;
  Distribution distribution = Distribution::normal;
  bool keep_order = true;  ///< false: each packet draws its own delay and may overtake another
  Probability loss;        ///< of each packet, independently
  std::optional<BurstLoss> burst_loss;  ///< instead of `loss`
  Probability duplicate;
  Probability corrupt;          ///< one bit of the packet flips
  Probability reorder;          ///< of a packet to skip the delay
  std::optional<BitRate> rate;  ///< none: packets take no time on the line
  Layer layer = Layer::wire;
  Queue queue;

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

/// The share of packets that are lost in the long run, by `loss` or `burst_loss`.
double loss_share(const LinkSpec& spec);

/// How many jitters below its mean practically all of a distribution's draws lie above.
std::int64_t reach_below(Distribution distribution);

/// What is wrong with it, each as "what; what would be right"; empty when all is well.
std::vector<std::string> problems(const LinkSpec& spec);

/// One line, as in "20ms ± 1ms normal, 100Mbit/s (wire), loss 0.1%".
std::string to_string(const LinkSpec& spec);
std::string to_string(Layer layer);
std::string to_string(Distribution distribution);
std::string to_string(const Queue& queue);

}  // namespace orrery::netshape
