#include "agents/program/control_client.hh"

#include "base/error.hh"

namespace orrery {

ControlClient::ControlClient(const std::string& socket_path,
                             std::function<std::string()> waiting_for)
    : waiting_for_(std::move(waiting_for)),
      channel_(grpc::CreateChannel("unix:" + socket_path, grpc::InsecureChannelCredentials())),
      stub_(wire::Control::NewStub(channel_)),
      stream_(stub_->Attach(&context_)),
      listener_([this] { listen(); }) {}

ControlClient::~ControlClient() {
  context_.TryCancel();
  listener_.join();
}

void ControlClient::send(const wire::FromAgent& message) {
  const std::lock_guard lock(write_mutex_);
  if (!stream_->Write(message)) throw Error("the controller is gone");
}

void ControlClient::listen() {
  wire::ToAgent message;
  while (stream_->Read(&message)) {
    if (message.has_ask_waiting()) {
      wire::FromAgent answer;
      answer.mutable_waiting()->set_what(waiting_for_());
      const std::lock_guard lock(write_mutex_);
      stream_->Write(answer);
      continue;
    }
    const std::lock_guard lock(mutex_);
    connect_ |= message.has_connect();
    if (message.has_start()) epoch_ = message.start().epoch_ns();
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  gone_ = true;
  changed_.notify_all();
}

void ControlClient::hello(int rank, int pid) {
  wire::FromAgent message;
  message.mutable_hello()->set_rank(rank);
  message.mutable_hello()->set_pid(pid);
  send(message);
}

void ControlClient::await_connect() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return connect_ || gone_; });
  if (!connect_) throw Error("the controller is gone");
}

void ControlClient::connected() {
  wire::FromAgent message;
  message.mutable_connected();
  send(message);
}

std::int64_t ControlClient::await_start() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return epoch_ || gone_; });
  if (!epoch_) throw Error("the controller is gone");
  return *epoch_;
}

void ControlClient::done(bool ok, const std::string& reason) {
  wire::FromAgent message;
  message.mutable_done()->set_ok(ok);
  message.mutable_done()->set_reason(reason);
  send(message);
}

}  // namespace orrery
