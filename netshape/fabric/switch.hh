// All links of a plan joined: frames go in at a port, cross one emulated link after the other, and
// come out at another port. Pure: the time is an argument; whoever holds it reads and writes the
// devices.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "netshape/fabric/frame_pool.hh"
#include "netshape/fabric/lateness.hh"
#include "netshape/fabric/link_emulation.hh"

namespace orrery::netshape {

/// A device of a vertex. Port i < links is the one through which Plan::links[i] leaves its vertex,
/// and at which the opposite direction arrives; port links + k is the k-th switch's own, for
/// packets to the switch itself.
using PortNumber = std::size_t;

/// Segments of a frame on their way.
struct Piece {
  FrameRef frame;
  int first = 0;
  int count = 1;
  bool corrupted = false;
  bool marked = false;
  std::uint32_t corrupt_draw = 0;

  PacketSizes sizes() const;
};

/// Where pieces leave the fabric.
class PortWriter {
 public:
  virtual ~PortWriter() = default;
  virtual void write(PortNumber port, const Piece& piece) = 0;
};

/// A direction's figures so far.
struct Carried {
  std::int64_t packets = 0;  ///< released at the far end; segments
  std::int64_t l2_bytes = 0;
  std::int64_t on_the_way = 0;  ///< packets, those in the queue included
  Lateness lateness;            ///< of each release against its instant
};

class Switch {
 public:
  explicit Switch(const Plan& plan);

  std::size_t port_count() const { return ports_.size(); }
  FramePool& pool() { return pool_; }

  /// A frame that vertex's kernel sent through `port`. What is no IPv4 packet, and what nobody has
  /// the address of, is dropped and counted. `now` is never before an earlier call's.
  void receive(PortNumber port, FrameRef frame, Instant now);
  /// When the next piece leaves a link; none: nothing is on the way.
  std::optional<Instant> next_release() const;
  /// Releases all that is due at `now`, in the order of time. A piece enters its next link at the
  /// instant of its release, however late that is in coming: lateness does not add up over links.
  /// At most `most` pieces; true: there are more.
  bool release_until(Instant now, PortWriter& writer, int most);

  /// The links of `after` that are named: all from one instant on.
  void change(const Plan& after, const std::vector<std::string>& names);

  std::vector<LinkCounters> counters(Instant now);
  std::vector<ReleaseLateness> lateness() const;
  const LinkEmulation& link(const std::string& name) const;
  /// Frames that no link took: not IPv4, or to an unknown address.
  std::int64_t refused() const { return refused_; }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  struct Direction {
    std::string name;
    std::size_t from = 0;  ///< vertex
    std::size_t to = 0;
    LinkEmulation emulation;
    Carried carried;
  };
  struct Port {
    std::size_t vertex = 0;
    std::size_t link = nowhere;  ///< nowhere: a switch's own
  };
  struct Due {
    Instant at;
    std::uint64_t order = 0;  ///< first in, first out among equals
    std::size_t link = 0;
    Piece piece;
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void forward(std::size_t vertex, const Piece& piece, Instant now);
  void enter(std::size_t link, const Piece& piece, Instant now);
  void arrive(const Due& due, PortWriter& writer);
  std::size_t index_of(const std::string& link) const;

  FramePool pool_;  // first: it outlives all that is on the way
  std::vector<Direction> links_;
  std::vector<Port> ports_;
  std::vector<bool> is_switch_;
  std::vector<PortNumber> own_port_;                         ///< of a switch
  std::unordered_map<std::uint32_t, std::size_t> vertices_;  ///< by address
  std::vector<std::vector<std::size_t>> next_;  ///< [switch vertex][target vertex] → link
  std::vector<Due> heap_;
  std::uint64_t order_ = 0;
  std::int64_t refused_ = 0;
};

}  // namespace orrery::netshape
