// One direction of a link, emulated: a packet goes in, and out come the instants at which it, or
// its parts, arrive at the far end. Pure: the time is an argument, chance is the seed's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "netshape/backend.hh"
#include "netshape/fabric/impairments.hh"
#include "netshape/fabric/line.hh"

namespace orrery::netshape {

/// What a link sees of a packet. A super-packet stands for several segments, each a packet to the
/// link.
struct PacketSizes {
  int segments = 1;
  std::int64_t full_bytes = 0;  ///< of each segment but the last, from the Ethernet header on
  std::int64_t last_bytes = 0;
  bool speaks_ecn = false;

  std::int64_t bytes(int first, int count) const {
    const bool with_last = first + count == segments;
    return with_last ? (count - 1) * full_bytes + last_bytes : count * full_bytes;
  }
};

/// Segments first … first + count - 1 arrive at `at`.
struct Release {
  Instant at;
  int first = 0;
  int count = 1;
  bool corrupted = false;          ///< then count is 1
  bool marked = false;             ///< congestion experienced, all of them
  std::uint32_t corrupt_draw = 0;  ///< chooses the bit
};

/// In this order: chance (loss, duplication, corruption), the queue, the line, the delay. Without
/// jitter that gives the same arrivals as the delay before the queue (docs/links.md).
class LinkEmulation {
 public:
  explicit LinkEmulation(LinkModel model) : impairments_(std::move(model)) {}

  /// What is on the way, or waits, keeps the times that it was told.
  void change(LinkModel model) { impairments_.change(std::move(model)); }
  const LinkModel& model() const { return impairments_.model(); }

  /// Valid until the next call; in the order of segments, a segment's copy right behind it. An
  /// instant before that of an earlier call counts as the earlier one.
  std::span<const Release> enqueue(const PacketSizes& sizes, Instant now);

  std::int64_t queue_drops() const { return queue_drops_; }
  std::int64_t loss_drops() const { return loss_drops_; }
  Line& line() { return line_; }

 private:
  void send(const PacketSizes& sizes, int segment, const Fate& fate, bool copy);
  void add(const Release& release);

  Impairments impairments_;
  Line line_;
  std::vector<Release> releases_;
  Instant group_began_;  ///< the first arrival of the newest release
  Instant now_;
  Instant last_;  ///< the latest arrival of a packet that kept its place
  std::int64_t queue_drops_ = 0;
  std::int64_t loss_drops_ = 0;
};

}  // namespace orrery::netshape
