#include "agents/node.hh"

#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

namespace orrery {
namespace {

// Private memory of this process, KiB: what one more agent costs.
std::int64_t private_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::int64_t total = 0;
  for (std::string key; rollup >> key;) {
    std::int64_t value = 0;
    if ((key == "Private_Clean:" || key == "Private_Dirty:") && rollup >> value) total += value;
  }
  return total;
}

}  // namespace

// While one of these lives, host cycles belong to the node and not to the strategy's own code.
class Node::Inside {
 public:
  explicit Inside(Node& node) : node_(node) {
    // What comes before the first kernel is setting up, not training.
    if (node_.parts_.device.totals().kernels > 0)
      node_.uncharged_cycles_ += host_cycles() - node_.outside_since_;
  }
  ~Inside() {
    if (node_.parts_.activity) node_.parts_.activity->own_code(node_.now());
    node_.outside_since_ = host_cycles();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Node& node_;
};

Node::Node(const NodeParts& parts) : parts_(parts), outside_since_(host_cycles()) {}

void Node::span(Instant begin, Instant end, const char* category, const std::string& text) {
  if (end <= begin || spans_++ >= parts_.span_limit) return;
  wire::Record record;
  wire::Span* span = record.mutable_span();
  span->set_begin(begin.ns);
  span->set_end(end.ns);
  span->set_node(rank());
  span->set_category(category);
  span->set_name(text);
  parts_.records.write(record);
}

void Node::settle_device() {
  if (parts_.activity) parts_.activity->sleeping(parts_.device.time());
  parts_.device.settle();
}

void Node::compute(const KernelSpec& kernel, const std::function<void()>& work) {
  const Inside inside(*this);
  if (parts_.activity) parts_.activity->computing(kernel, now());
  const Device::Handle handle = parts_.device.run(kernel, work);
  span(handle.begin, handle.end, "compute", kernel.key());
}

Device::Handle Node::start(const KernelSpec& kernel, const std::function<void()>& work) {
  const Inside inside(*this);
  if (parts_.activity) parts_.activity->computing(kernel, now());
  const Device::Handle handle = parts_.device.start(kernel, work);
  started_.emplace(handle.number, kernel.key());
  return handle;
}

void Node::finish(const Device::Handle& handle) {
  const Inside inside(*this);
  const Instant end = parts_.device.end_of(handle);
  if (parts_.activity) parts_.activity->sleeping(end);
  parts_.device.wait(handle);
  if (const auto key = started_.extract(handle.number))
    span(handle.begin, end, "compute", key.mapped());
}

void Node::send(int peer, Message message) {
  const Inside inside(*this);
  const Device::Handle handle = parts_.device.interrupt(message_kernel(message.payload_bytes()));
  settle_device();
  span(handle.begin, handle.end, "send",
       std::string(to_string(message.kind)) + " to " + name(peer));
  if (parts_.activity) parts_.activity->sending(peer, message.tag, now());
  parts_.transport.send(peer, std::move(message));
}

Message Node::recv(Source source) {
  wait_any({&source, 1}, std::nullopt);
  return *try_recv(source);
}

std::optional<Message> Node::try_recv(Source source) {
  const Inside inside(*this);
  settle_device();
  std::optional<Message> message = parts_.transport.try_recv(source);
  if (message) {
    ++received_[source];
    parts_.device.interrupt(message_kernel(message->payload_bytes()));
  }
  return message;
}

void Node::tell_waiting(std::span<const Source> sources) {
  if (!parts_.activity) return;
  awaited_numbers_.clear();
  for (const Source& source : sources) awaited_numbers_.push_back(received_[source] + 1);
  parts_.activity->waiting(sources, awaited_numbers_, now());
}

int Node::wait_any(std::span<const Source> sources, std::optional<Instant> deadline) {
  const Inside inside(*this);
  {
    const std::lock_guard lock(waiting_mutex_);
    waiting_.assign(sources.begin(), sources.end());
  }
  settle_device();
  tell_waiting(sources);
  const Instant begin = parts_.device.time();
  const int index = parts_.transport.wait_any(sources, deadline);
  {
    const std::lock_guard lock(waiting_mutex_);
    waiting_.clear();
  }
  const Instant end = parts_.device.observe();
  // A message that was there already is no wait; a reading of the clock still moves it.
  if (index >= 0 && end - begin > Duration::microseconds(2))
    span(begin, end, "wait", "for " + name(sources[static_cast<std::size_t>(index)].peer));
  return index;
}

void Node::log(std::int64_t step, const std::string& phase, double loss, std::int64_t samples,
               const std::function<Figures()>& extra) {
  const Inside inside(*this);
  wire::Record record;
  wire::Step* row = record.mutable_step();
  row->set_t(now().ns);
  row->set_node(rank());
  row->set_step(step);
  row->set_phase(phase);
  row->set_loss(loss);
  row->set_samples(samples);
  if (extra)
    for (const auto& [key, value] : extra()) (*row->mutable_extra())[key] = value;
  parts_.records.write(record);
}

void Node::count_samples(std::int64_t forward, std::int64_t backward) {
  samples_forward_ += forward;
  samples_backward_ += backward;
}

bool Node::evaluation_due(std::int64_t step) const {
  return parts_.evaluate_every > 0 && step % parts_.evaluate_every == 0;
}

void Node::snapshot(std::int64_t step, std::int64_t offset, std::span<const float> values) {
  const Inside inside(*this);
  wire::Record record;
  wire::Snapshot* snapshot = record.mutable_snapshot();
  // No clock is read: a snapshot must cost no emulated time, not even 256 ns. The time is that of
  // the step's own row.
  snapshot->set_t(-1);
  snapshot->set_node(rank());
  snapshot->set_step(step);
  snapshot->set_offset(offset);
  snapshot->set_values(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  parts_.records.write(record);
}

std::string Node::waiting_for() const {
  const std::lock_guard lock(waiting_mutex_);
  if (waiting_.empty()) return "computing";
  std::string text = "waiting for ";
  for (std::size_t i = 0; i < waiting_.size(); ++i)
    text += (i ? " or " : "") + name(waiting_[i].peer) + " (channel " +
            std::to_string(waiting_[i].tag) + ")";
  return text;
}

void Node::settle() {
  const Inside inside(*this);
  settle_device();
}

// What happened since settle() was waiting for peers to end, not the strategy's work.
void Node::close() {
  for (const auto& [to, traffic] : parts_.transport.sent()) {
    wire::Record record;
    wire::Traffic* entry = record.mutable_traffic();
    entry->set_node(rank());
    entry->set_peer(to.first);
    entry->set_kind(to_string(to.second));
    entry->set_messages(traffic.messages);
    entry->set_bytes(traffic.bytes);
    parts_.records.write(record);
  }
  const Device::Totals& totals = parts_.device.totals();
  wire::Record record;
  wire::NodeTotals* entry = record.mutable_node_totals();
  entry->set_node(rank());
  entry->set_busy_ns(totals.busy.ns);
  entry->set_kernels(totals.kernels);
  entry->set_charged_cycles(totals.charged_cycles);
  entry->set_overruns(totals.overruns);
  entry->set_overrun_ns(totals.overrun_time.ns);
  entry->set_uncharged_cycles(uncharged_cycles_);
  entry->set_samples_forward(samples_forward_);
  entry->set_samples_backward(samples_backward_);
  entry->set_resident_kib(private_kib());
  entry->set_interpolated(parts_.device.interpolated());
  parts_.records.write(record);
}

}  // namespace orrery
