// A cluster in one process, on a virtual clock: each node is a thread, exactly one runs at a time,
// and time jumps to the next event when all of them wait. So a run is deterministic to the
// nanosecond and its times can be compared with closed forms.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/data/dataset.hh"
#include "agents/device.hh"
#include "agents/kernels.hh"
#include "agents/strategy.hh"
#include "proto/record_stream.hh"

namespace orrery::test {

/// Keeps records in memory.
class VectorSink : public RecordSink {
 public:
  void write(const wire::Record& record) override { records.push_back(record); }
  std::vector<wire::Record> records;
};

/// A fixed time for each operation; what is not named costs nothing.
struct FixedCost : CostModel {
  FixedCost() = default;
  explicit FixedCost(std::map<KernelOp, Duration> times) : by_op(std::move(times)) {}
  std::map<KernelOp, Duration> by_op;
  Duration base(const KernelSpec& kernel) const override {
    const auto found = by_op.find(kernel.op);
    return found == by_op.end() ? Duration{} : found->second;
  }
};

struct SimLink {
  Duration delay{};
  double bytes_per_second = 0;  ///< 0: no serialisation time
};

struct SimSpec {
  ClusterView cluster;
  WorkloadView workload;
  const Dataset* data = nullptr;
  Options options;
  StopRule stop;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 0;
  SimLink link;                                              ///< of every ordered pair
  std::map<std::pair<int, int>, SimLink> links = {};         ///< exceptions, (from, to)
  std::vector<std::shared_ptr<const CostModel>> costs = {};  ///< by rank; missing: all is free
  std::vector<SpeedSchedule> schedules = {};                 ///< by rank; missing: always 1
  std::map<int, Instant> kills = {};                         ///< rank → when it dies
  std::function<std::unique_ptr<Kernels>()> kernels = {};    ///< default: the reference kernels
  /// Changes the plan before the run, e.g. to hand out wrong blocks.
  std::function<void(Placement&)> tamper = {};
};

struct SimNode {
  std::vector<wire::Record> records;
  std::string error;  ///< what run() threw; empty: it returned
  bool killed = false;
  int lost_peer = -1;  ///< of a PeerLost
  Instant end{};

  /// Rows of one phase, in order.
  std::vector<wire::Step> rows(const std::string& phase) const;
  std::vector<wire::Snapshot> snapshots() const;
  std::int64_t sent_bytes(const std::string& kind) const;
  std::int64_t sent_messages(const std::string& kind) const;
};

struct SimResult {
  Placement placement;
  std::vector<SimNode> nodes;

  /// All nodes returned without an error.
  bool ok() const;
  std::string errors() const;
  /// The model's flat parameters in the snapshots of `step`. Throws if they do not make a whole
  /// model.
  std::vector<float> parameters(std::int64_t step, std::int64_t count) const;
};

/// plan() and run() on every node. Throws std::runtime_error at a deadlock: every thread waits, no
/// event is due; the text says who waits for what.
SimResult run_cluster(const Strategy& strategy, const SimSpec& spec);

/// Small images of `classes` noisy patterns: learnable, and the same everywhere.
Dataset toy_dataset(std::int64_t edge, std::int64_t classes, std::int64_t images);

}  // namespace orrery::test
