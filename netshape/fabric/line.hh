// The queue before a line, and the line: when a packet's last bit has left, or that there was no
// room for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "netshape/fabric/link_model.hh"

namespace orrery::netshape {

/// A first-in first-out queue whose whole future is known at each arrival: a packet is told at once
/// when it will have left. What is told stays so: a new rate holds for later arrivals, behind all
/// that wait already.
class Line {
 public:
  struct Passage {
    Instant end;  ///< its last bit is on the way
    bool marked = false;
  };

  /// `l2_bytes` is what the queue counts. None: the queue is full. Instants do not descend.
  std::optional<Passage> pass(const LinkModel& model, std::int64_t l2_bytes, bool speaks_ecn,
                              Instant now);

  /// Packets and bytes that wait at `now`, the one on the line not included.
  std::int64_t waiting_packets(Instant now);
  std::int64_t waiting_bytes(Instant now);

 private:
  struct Waiting {
    Instant start;
    std::int64_t bytes;
  };
  void leave(Instant now);
  void join(Waiting waiting);

  // A ring that grows to the deepest queue there was, and then allocates no more.
  std::vector<Waiting> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::int64_t bytes_ = 0;
  Instant free_at_;             ///< the line's
  std::int64_t left_over_ = 0;  ///< of the last division: a busy line gains and loses no time
  std::int64_t left_over_of_ = 0;
};

}  // namespace orrery::netshape
