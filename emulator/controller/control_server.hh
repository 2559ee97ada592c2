// The controller's end of the control service: one stream an agent, turned into events.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "base/units.hh"
#include "proto/control.grpc.pb.h"

namespace orrery::emulator {

struct AgentHello {
  int rank;
  int pid;
};
struct AgentConnected {
  int rank;
};
struct AgentWaiting {
  int rank;
  std::string what;
};
struct AgentDone {
  int rank;
  bool ok;
  std::string reason;
};
/// Its process ended; `status` as waitpid() gives it.
struct AgentExited {
  int rank;
  int pid;
  int status;
};
struct AgentSpawned {
  int rank;
  int pid;
};
/// The process that agents are forked from has loaded everything, or has died.
struct ZygoteReady {};
struct ZygoteGone {};

using Event = std::variant<AgentHello, AgentConnected, AgentWaiting, AgentDone, AgentExited,
                           AgentSpawned, ZygoteReady, ZygoteGone>;

/// What other threads tell the controller's own.
class EventQueue {
 public:
  void push(Event event);
  /// The next event, or nothing at `deadline` (CLOCK_MONOTONIC, ns).
  std::optional<Event> pop(std::int64_t deadline_ns);

 private:
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<Event> events_;
};

class ControlServer : private wire::Control::Service {
 public:
  /// Listens on a Unix socket at `path` (relative paths may be longer in all: the kernel's limit is
  /// 107 bytes).
  ControlServer(const std::string& path, EventQueue& events);
  ~ControlServer() override;

  /// False if that agent has no stream (any more).
  bool send(int rank, const wire::ToAgent& message);

 private:
  using Stream = grpc::ServerReaderWriter<wire::ToAgent, wire::FromAgent>;
  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override;

  EventQueue& events_;
  std::mutex mutex_;
  std::map<int, Stream*> streams_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace orrery::emulator
