// Tensors over gRPC on the shaped addresses.
//
// One TCP connection an ordered pair (from → to), made by the sender and handed to gRPC as a
// descriptor, so that its buffers, congestion control and source address are ours and nothing of it
// leaves by another interface. On it, one stream of raw byte buffers: no tensor is copied on the
// way out; on the way in each is copied once, out of gRPC's slices.
#pragma once

#include <grpcpp/completion_queue.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/clock.hh"
#include "agents/transport.hh"

namespace orrery {

struct TransportOptions {
  int rank = 0;
  std::vector<std::string> addresses;  ///< IPv4, by rank
  int port = 7000;
  /// Socket buffers by peer, bytes: from the links' bandwidth-delay products. 0: the system's own.
  std::vector<std::int64_t> socket_buffers;
  /// Of the connections, as far as this process may choose; empty: the system's own.
  std::string congestion_control;
  /// Queued and unsent bytes to one peer above which send() blocks.
  std::int64_t high_water = 64 << 20;
};

class GrpcTransport : public Transport {
 public:
  GrpcTransport(TransportOptions options, MonotonicClock& clock);
  ~GrpcTransport() override;

  /// Accepts peers from now on.
  void listen();
  /// Connects to `peers` (ascending ranks) and returns when each has answered. Throws PeerLost.
  void connect(const std::vector<int>& peers);
  /// Ends all streams in order: what was sent arrives.
  void close();

  /// The queue that its thread polls; tags must be Completions. For the agent's other streams.
  grpc::CompletionQueue& queue();

  int rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.addresses.size()); }
  void send(int peer, Message message) override;
  std::optional<Message> try_recv(Source source) override;
  int wait_any(std::span<const Source> sources, std::optional<Instant> deadline) override;
  void forgive(int peer) override;
  void reconnect(int peer) override { connect({peer}); }

 private:
  struct Outgoing;
  struct Incoming;
  struct Endpoint;

  /// Starts an operation of gRPC's unless the queue is about to end.
  void begin(const std::function<void()>& operation);
  void deliver(int from, Message message);
  void mark_lost(int peer, const std::string& why);
  void write_next(Outgoing& out);
  void await_call();
  void poll();
  void accept_loop();

  TransportOptions options_;
  MonotonicClock& clock_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Source, std::deque<Message>> inbox_;
  std::map<int, std::string> lost_;  ///< peer → why
  bool closing_ = false;             ///< nothing more is sent
  bool stopping_ = false;            ///< no operation may begin

  std::unique_ptr<Endpoint> endpoint_;
  std::map<int, std::unique_ptr<Outgoing>> outgoing_;
  std::vector<std::unique_ptr<Outgoing>> replaced_;  ///< of peers that came back
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::thread poll_thread_;
  std::thread accept_thread_;
};

}  // namespace orrery
