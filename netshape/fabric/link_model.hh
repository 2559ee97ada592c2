// What the fabric is told of one direction of a link: the plan's figures in the units that each
// packet is reckoned with. The one place where a property of LinkSpec becomes one of the fabric's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "netshape/plan.hh"

namespace orrery::netshape {

/// A chance as a bound: a 32-bit draw below it is a hit. 2^32 always hits.
using Chance = std::uint64_t;
Chance chance(Probability p);

struct LinkModel {
  std::uint64_t seed = 0;

  Chance loss = 0;
  std::optional<BurstLoss> burst_loss;
  Chance duplicate = 0;
  Chance corrupt = 0;
  Chance reorder = 0;
  bool mark_losses = false;  ///< a packet that speaks ECN is marked instead of lost

  std::int64_t bits_per_second = 0;  ///< 0: packets take no time on the line
  std::int64_t overhead = 0;         ///< bytes that the rate counts beside the Ethernet frame's
  std::int64_t queue_bytes = 0;      ///< Ethernet frames that wait for the line
  /// A packet that speaks ECN and finds so many bytes waiting, or more, is marked (RFC 3168).
  std::optional<std::int64_t> mark_above;

  Duration delay;
  Duration jitter;
  std::vector<std::int16_t> quantiles;  ///< of the jitter, × 8192, equally likely
  bool keep_order = true;

  /// Segments whose last bits are at most so far apart arrive together, as one super-packet.
  Duration longest_burst = Duration::microseconds(50);
};

LinkModel model_of(const LinkPlan& link);

}  // namespace orrery::netshape
