// Messages between nodes. The shaped network carries these and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agents/tensor.hh"
#include "base/error.hh"
#include "base/units.hh"

namespace orrery {

/// What a message is, for the books: bytes are reported by kind.
enum class MessageKind : std::uint8_t { activation, gradient, parameter, scalar, control, move };
inline constexpr int message_kinds = 6;
const char* to_string(MessageKind kind);

/// `tag` is the channel on which the receiver waits; messages of one (peer, tag) arrive in order.
struct Message {
  MessageKind kind = MessageKind::control;
  std::uint32_t tag = 0;
  std::string header;           ///< small fixed-layout values, the strategy's own
  std::vector<Tensor> tensors;  ///< must not be written to after send()

  std::int64_t payload_bytes() const {
    std::int64_t total = static_cast<std::int64_t>(header.size());
    for (const Tensor& tensor : tensors) total += tensor.bytes();
    return total;
  }
};

/// Where a message is awaited from.
struct Source {
  int peer = 0;
  std::uint32_t tag = 0;
  friend auto operator<=>(const Source&, const Source&) = default;
};

/// A peer's connection ended while (or before) something was awaited from or sent to it.
class PeerLost : public Error {
 public:
  PeerLost(int peer, const std::string& what) : Error(what), peer_(peer) {}
  int peer() const { return peer_; }

 private:
  int peer_;
};

struct TrafficCount {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;  ///< payload: header + tensors
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Queues the message and returns; messages to one peer leave in order. Throws PeerLost.
  virtual void send(int peer, Message message) = 0;
  /// Takes a message that has arrived, or nothing.
  virtual std::optional<Message> try_recv(Source source) = 0;
  /// Waits until one of `sources` has a message, or until `deadline`. Returns the index of the
  /// first source in the given order that has one, or −1 at the deadline. Throws PeerLost if a
  /// source without a message belongs to a lost peer.
  virtual int wait_any(std::span<const Source> sources, std::optional<Instant> deadline) = 0;

  /// After a PeerLost: waits on the peer do not throw for that loss again, so a peer that comes
  /// back can be waited for.
  virtual void forgive(int peer) { static_cast<void>(peer); }
  /// Makes the connection to a peer that came back anew. Throws PeerLost.
  virtual void reconnect(int peer) { static_cast<void>(peer); }

  Message recv(Source source) {
    wait_any({&source, 1}, std::nullopt);
    return *try_recv(source);
  }

  /// Sent so far, by peer and kind.
  const std::map<std::pair<int, MessageKind>, TrafficCount>& sent() const { return sent_; }

 protected:
  void count(int peer, const Message& message) {
    TrafficCount& entry = sent_[{peer, message.kind}];
    ++entry.messages;
    entry.bytes += message.payload_bytes();
  }

 private:
  std::map<std::pair<int, MessageKind>, TrafficCount> sent_;
};

}  // namespace orrery
