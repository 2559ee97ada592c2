#include "emulator/controller/control_server.hh"

#include "base/error.hh"

namespace orrery::emulator {

void EventQueue::push(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  pushed_.notify_one();
}

std::optional<Event> EventQueue::pop(std::int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline_ns)};
  if (!pushed_.wait_until(lock, until, [&] { return !events_.empty(); })) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

ControlServer::ControlServer(const std::string& path, EventQueue& events) : events_(events) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<wire::Control::Service*>(this));
  // Threads that only wait cost wake-ups.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  server_ = builder.BuildAndStart();
  if (!server_) throw Error("cannot listen for agents on the Unix socket " + path);
}

ControlServer::~ControlServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

bool ControlServer::send(int rank, const wire::ToAgent& message) {
  const std::lock_guard lock(mutex_);
  const auto stream = streams_.find(rank);
  return stream != streams_.end() && stream->second->Write(message);
}

grpc::Status ControlServer::Attach(grpc::ServerContext*, Stream* stream) {
  wire::FromAgent message;
  int rank = -1;
  while (stream->Read(&message)) {
    if (message.has_hello()) {
      rank = message.hello().rank();
      {
        const std::lock_guard lock(mutex_);
        streams_[rank] = stream;
      }
      events_.push(AgentHello{rank, message.hello().pid()});
    } else if (message.has_connected()) {
      events_.push(AgentConnected{rank});
    } else if (message.has_waiting()) {
      events_.push(AgentWaiting{rank, message.waiting().what()});
    } else if (message.has_done()) {
      events_.push(AgentDone{rank, message.done().ok(), message.done().reason()});
    }
  }
  const std::lock_guard lock(mutex_);
  if (const auto own = streams_.find(rank); own != streams_.end() && own->second == stream)
    streams_.erase(own);
  return grpc::Status::OK;
}

}  // namespace orrery::emulator
