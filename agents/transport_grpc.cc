#include "agents/transport_grpc.hh"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>

#include "agents/completion.hh"
#include "agents/frame.hh"
#include "base/fd.hh"

namespace orrery {
namespace {

constexpr int read_chunk = 512 << 10;
const std::string method_prefix = "/orrery.Tensors/from/";

// gRPC's probes and pings would be packets that no real exchange of tensors needs, and its windows
// must never be what limits a link.
template <typename Arguments>
void set_channel_arguments(const Arguments& set) {
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 256 << 20);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  set(GRPC_ARG_ENABLE_RETRIES, 0);
  // Buffers that take a whole activation: gRPC wakes for what it has room for, and reads the rest
  // packet by packet.
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, read_chunk);
  set(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, read_chunk);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
}

sockaddr_in address_of(const std::string& address, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1)
    throw Error("'" + address + "' is not an IPv4 address");
  return result;
}

void tune(int fd, std::int64_t buffer, const std::string& congestion_control) {
  const int on = 1;
  check_system(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "set TCP_NODELAY");
  if (!congestion_control.empty())
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
                 static_cast<socklen_t>(congestion_control.size()));
  if (buffer <= 0) return;
  // The kernel doubles what it is told, and counts its own overhead in the other half.
  const int size = static_cast<int>(std::min<std::int64_t>(buffer, 1 << 30));
  for (const int option : {SO_SNDBUFFORCE, SO_RCVBUFFORCE})
    if (::setsockopt(fd, SOL_SOCKET, option, &size, sizeof size) != 0)
      ::setsockopt(fd, SOL_SOCKET, option == SO_SNDBUFFORCE ? SO_SNDBUF : SO_RCVBUF, &size,
                   sizeof size);
}

FileDescriptor tcp_socket() {
  return FileDescriptor(
      check_system(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "open a TCP socket"));
}

// gRPC wants its descriptors non-blocking.
void set_nonblocking(int fd) {
  const int flags = check_system(::fcntl(fd, F_GETFL), "read a socket's flags");
  check_system(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "make a socket non-blocking");
}

}  // namespace

struct GrpcTransport::Outgoing {
  int peer = 0;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  std::deque<grpc::ByteBuffer> queue;
  std::int64_t queued_bytes = 0;
  bool connected = false;
  bool writing = false;
  bool done_writing = false;
  bool finished = false;
  grpc::Status status;
  Completion on_start, on_metadata, on_write, on_writes_done, on_finish;
};

struct GrpcTransport::Incoming {
  int peer = -1;
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer buffer;
  Completion on_call, on_metadata, on_read, on_finish;
};

struct GrpcTransport::Endpoint {
  FileDescriptor listener;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

GrpcTransport::GrpcTransport(TransportOptions options, MonotonicClock& clock)
    : options_(std::move(options)), clock_(clock), endpoint_(std::make_unique<Endpoint>()) {
  options_.socket_buffers.resize(options_.addresses.size());
  grpc::ServerBuilder builder;
  set_channel_arguments(
      [&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.RegisterAsyncGenericService(&endpoint_->service);
  endpoint_->queue = builder.AddCompletionQueue();
  endpoint_->server = builder.BuildAndStart();
  if (!endpoint_->server) throw Error("gRPC could not start its server");
  poll_thread_ = std::thread([this] { poll(); });
}

GrpcTransport::~GrpcTransport() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    stopping_ = true;
    for (auto& [peer, out] : outgoing_) out->context.TryCancel();
  }
  if (endpoint_->listener) ::shutdown(endpoint_->listener.get(), SHUT_RDWR);
  if (accept_thread_.joinable()) accept_thread_.join();
  endpoint_->server->Shutdown(std::chrono::system_clock::now());
  endpoint_->queue->Shutdown();
  poll_thread_.join();
}

grpc::CompletionQueue& GrpcTransport::queue() { return *endpoint_->queue; }

void GrpcTransport::begin(const std::function<void()>& operation) {
  const std::lock_guard lock(mutex_);
  if (!stopping_) operation();
}

void GrpcTransport::listen() {
  endpoint_->listener = tcp_socket();
  const int fd = endpoint_->listener.get();
  const int on = 1;
  check_system(::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "set SO_REUSEADDR");
  std::int64_t largest = 0;
  for (const std::int64_t buffer : options_.socket_buffers) largest = std::max(largest, buffer);
  // Accepted sockets inherit buffers, and the window scale is fixed at the handshake: before
  // listen.
  tune(fd, largest, options_.congestion_control);
  const std::string& address = options_.addresses.at(static_cast<std::size_t>(options_.rank));
  const sockaddr_in own = address_of(address, options_.port);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
    throw_errno("bind " + address + ":" + std::to_string(options_.port));
  check_system(::listen(fd, size() + 8), "listen for peers");
  {
    const std::lock_guard lock(mutex_);
    await_call();
  }
  accept_thread_ = std::thread([this] { accept_loop(); });
}

void GrpcTransport::accept_loop() {
  for (;;) {
    const int fd =
        ::accept4(endpoint_->listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) return;  // the listener was shut down
    tune(fd, 0, options_.congestion_control);
    grpc::AddInsecureChannelFromFd(endpoint_->server.get(), fd);
  }
}

// mutex_ held.
void GrpcTransport::await_call() {
  incoming_.push_back(std::make_unique<Incoming>());
  Incoming* in = incoming_.back().get();
  in->on_call.done = [this, in](bool ok) {
    if (!ok) return;  // shutting down
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      await_call();
      const std::string& method = in->context.method();
      in->peer =
          method.starts_with(method_prefix) ? std::atoi(method.c_str() + method_prefix.size()) : -1;
      if (in->peer < 0 || in->peer >= size()) {
        in->stream.Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not a peer"),
                          &in->on_finish);
        return;
      }
      lost_.erase(in->peer);  // a node that was restarted is back
      in->stream.SendInitialMetadata(&in->on_metadata);
    }
  };
  in->on_metadata.done = [this, in](bool ok) {
    if (ok) begin([in] { in->stream.Read(&in->buffer, &in->on_read); });
  };
  in->on_read.done = [this, in](bool ok) {
    if (!ok) {
      mark_lost(in->peer, "ended its connection");
      begin([in] { in->stream.Finish(grpc::Status::OK, &in->on_finish); });
      return;
    }
    try {
      Received received = from_wire(in->buffer);
      in->buffer.Clear();
      deliver(in->peer, std::move(received.message));
      begin([in] { in->stream.Read(&in->buffer, &in->on_read); });
    } catch (const Error& error) {
      mark_lost(in->peer, error.what());
      const grpc::Status status(grpc::StatusCode::DATA_LOSS, error.what());
      begin([&] { in->stream.Finish(status, &in->on_finish); });
    }
  };
  in->on_finish.done = [](bool) {};
  endpoint_->service.RequestCall(&in->context, &in->stream, endpoint_->queue.get(),
                                 endpoint_->queue.get(), &in->on_call);
}

void GrpcTransport::connect(const std::vector<int>& peers) {
  for (const int peer : peers) {
    FileDescriptor socket = tcp_socket();
    tune(socket.get(), options_.socket_buffers.at(static_cast<std::size_t>(peer)),
         options_.congestion_control);
    const sockaddr_in own =
        address_of(options_.addresses.at(static_cast<std::size_t>(options_.rank)), 0);
    check_system(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own),
                 "bind to the shaped address");
    const std::string& address = options_.addresses.at(static_cast<std::size_t>(peer));
    const sockaddr_in other = address_of(address, options_.port);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0)
      throw PeerLost(peer, "cannot connect to node " + std::to_string(peer) + " at " + address +
                               ": " + SystemError("connect", errno).what());
    set_nonblocking(socket.get());

    auto out = std::make_unique<Outgoing>();
    Outgoing* o = out.get();
    o->peer = peer;
    grpc::ChannelArguments arguments;
    set_channel_arguments([&](const char* name, int value) { arguments.SetInt(name, value); });
    o->channel = grpc::CreateCustomInsecureChannelFromFd("orrery", socket.release(), arguments);
    o->on_start.done = [this, o](bool ok) {
      begin([&] {
        if (ok)
          o->stream->ReadInitialMetadata(&o->on_metadata);
        else
          o->stream->Finish(&o->status, &o->on_finish);
      });
    };
    o->on_metadata.done = [this, o](bool ok) {
      if (!ok) {
        begin([o] { o->stream->Finish(&o->status, &o->on_finish); });
        return;
      }
      const std::lock_guard lock(mutex_);
      o->connected = true;
      write_next(*o);
      changed_.notify_all();
    };
    o->on_write.done = [this, o](bool ok) {
      const std::lock_guard lock(mutex_);
      o->writing = false;
      o->queued_bytes -= static_cast<std::int64_t>(o->queue.front().Length());
      o->queue.pop_front();
      if (!ok) {
        lost_.emplace(o->peer, "ended its connection");
        o->queue.clear();
        o->queued_bytes = 0;
        if (!o->done_writing && !stopping_) {
          o->done_writing = true;
          o->stream->Finish(&o->status, &o->on_finish);
        }
      }
      write_next(*o);
      changed_.notify_all();
    };
    o->on_writes_done.done = [this, o](bool) {
      begin([o] { o->stream->Finish(&o->status, &o->on_finish); });
    };
    o->on_finish.done = [this, o](bool) {
      const std::lock_guard lock(mutex_);
      o->finished = true;
      o->connected = false;
      if (!o->status.ok()) lost_.emplace(o->peer, o->status.error_message());
      changed_.notify_all();
    };
    {
      const std::lock_guard lock(mutex_);
      std::unique_ptr<Outgoing>& slot = outgoing_[peer];
      if (slot) replaced_.push_back(std::move(slot));
      slot = std::move(out);
    }
    grpc::GenericStub stub(o->channel);
    o->stream = stub.PrepareCall(&o->context, method_prefix + std::to_string(options_.rank),
                                 endpoint_->queue.get());
    o->stream->StartCall(&o->on_start);
  }
  std::unique_lock lock(mutex_);
  for (const int peer : peers) {
    Outgoing& out = *outgoing_.at(peer);
    changed_.wait(lock, [&] { return out.connected || out.finished; });
    if (!out.connected)
      throw PeerLost(
          peer, "node " + std::to_string(peer) + " did not answer: " + out.status.error_message());
  }
}

// mutex_ held.
void GrpcTransport::write_next(Outgoing& out) {
  if (stopping_ || !out.connected || out.writing || out.done_writing) return;
  if (!out.queue.empty()) {
    out.writing = true;
    out.stream->Write(out.queue.front(), &out.on_write);
  } else if (closing_) {
    out.done_writing = true;
    out.stream->WritesDone(&out.on_writes_done);
  }
}

void GrpcTransport::send(int peer, Message message) {
  count(peer, message);
  if (peer == rank()) {  // a node that is its own neighbour: nothing to put on a wire
    deliver(peer, std::move(message));
    return;
  }
  grpc::ByteBuffer buffer = to_wire(rank(), message);
  std::unique_lock lock(mutex_);
  const auto found = outgoing_.find(peer);
  if (found == outgoing_.end())
    throw std::logic_error("node " + std::to_string(rank()) + " sends to node " +
                           std::to_string(peer) + ", which its placement does not name");
  Outgoing& out = *found->second;
  changed_.wait(lock, [&] {
    return lost_.count(peer) || out.finished || out.queued_bytes < options_.high_water;
  });
  if (const auto gone = lost_.find(peer); gone != lost_.end() || out.finished)
    throw PeerLost(peer, "node " + std::to_string(peer) + " " +
                             (gone != lost_.end() ? gone->second : "ended its connection"));
  out.queued_bytes += static_cast<std::int64_t>(buffer.Length());
  out.queue.push_back(std::move(buffer));
  write_next(out);
}

void GrpcTransport::deliver(int from, Message message) {
  const std::lock_guard lock(mutex_);
  inbox_[{from, message.tag}].push_back(std::move(message));
  changed_.notify_all();
}

void GrpcTransport::mark_lost(int peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  lost_.emplace(peer, why);
  changed_.notify_all();
}

std::optional<Message> GrpcTransport::try_recv(Source source) {
  const std::lock_guard lock(mutex_);
  const auto found = inbox_.find(source);
  if (found == inbox_.end() || found->second.empty()) return std::nullopt;
  Message message = std::move(found->second.front());
  found->second.pop_front();
  return message;
}

int GrpcTransport::wait_any(std::span<const Source> sources, std::optional<Instant> deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto found = inbox_.find(sources[i]);
      if (found != inbox_.end() && !found->second.empty()) return static_cast<int>(i);
    }
    for (const Source& source : sources)
      if (const auto gone = lost_.find(source.peer); gone != lost_.end())
        throw PeerLost(source.peer, "node " + std::to_string(source.peer) + " " + gone->second);
    if (!deadline) {
      changed_.wait(lock);
      continue;
    }
    const std::chrono::steady_clock::time_point until{
        std::chrono::nanoseconds(clock_.epoch_ns() + deadline->ns)};
    if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto found = inbox_.find(sources[i]);
        if (found != inbox_.end() && !found->second.empty()) return static_cast<int>(i);
      }
      return -1;
    }
  }
}

void GrpcTransport::forgive(int peer) {
  const std::lock_guard lock(mutex_);
  lost_.erase(peer);
}

void GrpcTransport::poll() {
  void* tag = nullptr;
  bool ok = false;
  while (endpoint_->queue->Next(&tag, &ok)) static_cast<Completion*>(tag)->done(ok);
}

void GrpcTransport::close() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  for (auto& [peer, out] : outgoing_) write_next(*out);
  changed_.wait(lock, [&] {
    for (const auto& [peer, out] : outgoing_)
      if (!out->finished && !lost_.count(peer)) return false;
    return true;
  });
}

}  // namespace orrery
