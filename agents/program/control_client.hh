// An agent's end of the control service. It has no thread of its own: the transport's polls for it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "agents/completion.hh"
#include "proto/control.grpc.pb.h"

namespace orrery {

class ControlClient {
 public:
  /// `queue` is polled by somebody else for as long as this lives. `waiting_for` answers the
  /// controller's question, in the polling thread.
  ControlClient(const std::string& socket_path, grpc::CompletionQueue& queue,
                std::function<std::string()> waiting_for);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  void hello(int rank, int pid);
  /// Blocks until the controller says so; throws Error if it went away.
  void await_connect();
  void connected();
  /// Returns the epoch: CLOCK_MONOTONIC, ns, at which the run's time is zero.
  std::int64_t await_start();
  /// The last word; returns when the controller has it.
  void done(bool ok, const std::string& reason);

 private:
  void send(wire::FromAgent message);
  void write_next();
  void handle(const wire::ToAgent& message);
  void finish();

  std::function<std::string()> waiting_for_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::Control::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<wire::FromAgent, wire::ToAgent>> stream_;
  Completion on_start_, on_read_, on_write_, on_writes_done_, on_finish_;
  wire::ToAgent incoming_;
  grpc::Status status_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::FromAgent> outgoing_;
  bool started_ = false;
  bool writing_ = false;
  bool last_word_ = false;
  bool reading_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  bool connect_ = false;
  std::optional<std::int64_t> epoch_;
};

}  // namespace orrery
