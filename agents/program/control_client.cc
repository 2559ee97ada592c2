#include "agents/program/control_client.hh"

#include "base/error.hh"

namespace orrery {

ControlClient::ControlClient(const std::string& socket_path, grpc::CompletionQueue& queue,
                             std::function<std::string()> waiting_for)
    : waiting_for_(std::move(waiting_for)),
      channel_(grpc::CreateChannel("unix:" + socket_path, grpc::InsecureChannelCredentials())),
      stub_(wire::Control::NewStub(channel_)),
      stream_(stub_->PrepareAsyncAttach(&context_, &queue)) {
  on_start_.done = [this](bool ok) {
    const std::lock_guard lock(mutex_);
    started_ = ok;
    if (!ok) {
      finish();
      return;
    }
    reading_ = true;
    stream_->Read(&incoming_, &on_read_);
    write_next();
  };
  on_read_.done = [this](bool ok) {
    if (ok) handle(incoming_);
    const std::lock_guard lock(mutex_);
    reading_ = ok;
    if (ok)
      stream_->Read(&incoming_, &on_read_);
    else
      finish();
    changed_.notify_all();
  };
  on_write_.done = [this](bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (ok) write_next();
  };
  on_writes_done_.done = [](bool) {};  // the controller's end of the stream follows
  on_finish_.done = [this](bool) {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  };
  stream_->StartCall(&on_start_);
}

ControlClient::~ControlClient() {
  context_.TryCancel();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_; });
}

// mutex_ held. gRPC's last operation: only when no read is outstanding.
void ControlClient::finish() {
  if (finishing_) return;
  finishing_ = true;
  stream_->Finish(&status_, &on_finish_);
}

// mutex_ held.
void ControlClient::write_next() {
  if (!started_ || writing_ || finishing_) return;
  if (!outgoing_.empty()) {
    writing_ = true;
    stream_->Write(outgoing_.front(), &on_write_);
  } else if (last_word_) {
    last_word_ = false;
    stream_->WritesDone(&on_writes_done_);
  }
}

void ControlClient::send(wire::FromAgent message) {
  const std::lock_guard lock(mutex_);
  if (finishing_) throw Error("the controller is gone");
  outgoing_.push_back(std::move(message));
  write_next();
}

void ControlClient::handle(const wire::ToAgent& message) {
  if (message.has_ask_waiting()) {
    wire::FromAgent answer;
    answer.mutable_waiting()->set_what(waiting_for_());
    const std::lock_guard lock(mutex_);
    outgoing_.push_back(std::move(answer));
    write_next();
    return;
  }
  const std::lock_guard lock(mutex_);
  connect_ |= message.has_connect();
  if (message.has_start()) epoch_ = message.start().epoch_ns();
}

void ControlClient::hello(int rank, int pid) {
  wire::FromAgent message;
  message.mutable_hello()->set_rank(rank);
  message.mutable_hello()->set_pid(pid);
  send(std::move(message));
}

void ControlClient::await_connect() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return connect_ || finishing_; });
  if (!connect_) throw Error("the controller is gone");
}

void ControlClient::connected() {
  wire::FromAgent message;
  message.mutable_connected();
  send(std::move(message));
}

std::int64_t ControlClient::await_start() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return epoch_ || finishing_; });
  if (!epoch_) throw Error("the controller is gone");
  return *epoch_;
}

void ControlClient::done(bool ok, const std::string& reason) {
  wire::FromAgent message;
  message.mutable_done()->set_ok(ok);
  message.mutable_done()->set_reason(reason);
  send(std::move(message));
  std::unique_lock lock(mutex_);
  last_word_ = true;
  write_next();
  changed_.wait(lock, [&] { return finished_; });
}

}  // namespace orrery
