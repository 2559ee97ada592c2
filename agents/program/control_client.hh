// An agent's end of the control service.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "proto/control.grpc.pb.h"

namespace orrery {

class ControlClient {
 public:
  /// `waiting_for` answers the controller's question, from another thread.
  ControlClient(const std::string& socket_path, std::function<std::string()> waiting_for);
  ~ControlClient();

  void hello(int rank, int pid);
  /// Blocks until the controller says so; throws Error if it went away.
  void await_connect();
  void connected();
  /// Returns the epoch: CLOCK_MONOTONIC, ns, at which the run's time is zero.
  std::int64_t await_start();
  void done(bool ok, const std::string& reason);

 private:
  void send(const wire::FromAgent& message);
  void listen();

  std::function<std::string()> waiting_for_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::Control::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::FromAgent, wire::ToAgent>> stream_;
  std::mutex write_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool connect_ = false;
  bool gone_ = false;
  std::optional<std::int64_t> epoch_;
  std::thread listener_;
};

}  // namespace orrery
