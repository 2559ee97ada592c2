// A node as a strategy sees it: clock + device + transport + data + kernels + books.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agents/activity.hh"
#include "agents/data/dataset.hh"
#include "agents/device.hh"
#include "agents/kernels.hh"
#include "agents/strategy.hh"
#include "agents/transport.hh"
#include "proto/record_stream.hh"

namespace orrery {

/// Everything that a node is made of; the Node owns none of it.
struct NodeParts {
  Clock& clock;
  Device& device;
  Transport& transport;
  Kernels& kernels;
  const Dataset& data;
  RecordSink& records;
  const ClusterView& cluster;
  const WorkloadView& workload;
  const Placement& placement;
  const Options& options;
  const StopRule& stop;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100;  ///< steps or evaluations between snapshots
  std::int64_t span_limit = 20000;    ///< spans kept a node; later ones are counted, not kept
  ActivityPage* activity = nullptr;   ///< tells a watchdog what it does; may be null
};

class Node {
 public:
  explicit Node(const NodeParts& parts);

  int rank() const { return parts_.transport.rank(); }
  int size() const { return parts_.transport.size(); }
  const std::string& name(int peer) const {
    return parts_.cluster.nodes.at(static_cast<std::size_t>(peer)).name;
  }
  const ClusterView& cluster() const { return parts_.cluster; }
  const WorkloadView& workload() const { return parts_.workload; }
  const ModelSpec& model() const { return parts_.workload.model; }
  const Placement& placement() const { return parts_.placement; }
  const NodePlacement& own() const {
    return parts_.placement.nodes.at(static_cast<std::size_t>(rank()));
  }
  const Options& options() const { return parts_.options; }
  const StopRule& stop() const { return parts_.stop; }
  std::uint64_t seed() const { return parts_.seed; }
  const Dataset& data() const { return parts_.data; }
  Kernels& kernels() { return parts_.kernels; }

  /// Where this node is in emulated time.
  Instant now() const { return parts_.device.time(); }

  /// Runs a kernel; afterwards the node is at its end in emulated time. It sleeps until then only
  /// before something that others could notice: sending, receiving, waiting.
  void compute(const KernelSpec& kernel, const std::function<void()>& work);
  /// Starts a kernel; messages may be sent and received before finish(), and interrupt it for as
  /// long as they cost.
  Device::Handle start(const KernelSpec& kernel, const std::function<void()>& work);
  void finish(const Device::Handle& handle);

  /// Charges the message's (de)serialisation to the device, then sends.
  void send(int peer, Message message);
  /// Waits for a message, then charges its deserialisation.
  Message recv(Source source);
  /// A message that has arrived, if any; charged like recv().
  std::optional<Message> try_recv(Source source);
  /// See Transport::wait_any.
  int wait_any(std::span<const Source> sources, std::optional<Instant> deadline = {});

  /// See Transport::forgive and reconnect.
  void forgive(int peer) { parts_.transport.forgive(peer); }
  void reconnect(int peer) { parts_.transport.reconnect(peer); }

  /// A strategy's own figures on a row, by column.
  using Figures = std::map<std::string, double>;
  /// One row of steps.csv. `extra` is called within: keeping a log is not training, and is not
  /// counted among what a strategy did without being charged for it.
  void log(std::int64_t step, const std::string& phase, double loss, std::int64_t samples,
           const std::function<Figures()>& extra = {});
  void count_samples(std::int64_t forward, std::int64_t backward);

  /// Whether parameters are to be written after `step`: every evaluate_every steps. Strategies also
  /// write one at step 0 and one at the end.
  bool evaluation_due(std::int64_t step) const;
  /// Writes parameters for out-of-band evaluation; costs no emulated time. `offset` counts floats
  /// in the model's flat vector. All parts of one step must make a whole model.
  void snapshot(std::int64_t step, std::int64_t offset, std::span<const float> values);

  /// What it is waiting for now, in words, for the watchdog: "activation 17 from board0".
  std::string waiting_for() const;
  /// Sleeps until the node's own time: before its connections are closed.
  void settle();
  /// Writes totals and traffic to the records: once, at the end.
  void close();

 private:
  void span(Instant begin, Instant end, const char* category, const std::string& text);
  /// Brackets what the node does itself, so that the rest is known to be the strategy's.
  class Inside;
  void settle_device();
  void tell_waiting(std::span<const Source> sources);

  NodeParts parts_;
  std::int64_t spans_ = 0;
  std::map<std::uint64_t, std::string> started_;  ///< keys of kernels under way, by number
  std::int64_t samples_forward_ = 0;
  std::int64_t samples_backward_ = 0;
  std::uint64_t outside_since_ = 0;
  std::uint64_t uncharged_cycles_ = 0;
  mutable std::mutex waiting_mutex_;  ///< the watchdog asks from another thread
  std::vector<Source> waiting_;
  std::map<Source, std::int64_t> received_;    ///< messages taken, by source
  std::vector<std::int64_t> awaited_numbers_;  ///< of `waiting_`; kept to spare allocations
};

}  // namespace orrery
