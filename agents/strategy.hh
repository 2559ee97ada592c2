// A strategy is a training algorithm in two phases: a pure plan() from which check, `orrery plan`
// and predictors work, and a blocking run() on each node. It never makes a thread, takes a lock,
// sleeps or reads a clock: its Node does, and so it runs in every engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/kernel.hh"
#include "agents/models/model.hh"
#include "base/error.hh"
#include "base/option.hh"
#include "base/units.hh"

namespace orrery {

class Node;

struct ClusterView {
  struct NodeView {
    std::string name;
    double speed = 1;  ///< relative
  };
  std::vector<NodeView> nodes;  ///< by rank
  /// For staged strategies: how many parametric layers each rank holds; empty: the strategy
  /// balances.
  std::vector<int> stage_layers = {};
  int size() const { return static_cast<int>(nodes.size()); }
  /// −1 if there is none.
  int find(const std::string& name) const;
};

struct WorkloadView {
  ModelSpec model;
  std::int64_t train_images = 0;
  std::int64_t objective_images = 0;  ///< the fixed set of gradient-free strategies
};

/// When a run ends: at the first rule that holds.
struct StopRule {
  std::optional<std::int64_t> evaluations = {};
  std::optional<std::int64_t> steps = {};
  std::optional<double> epochs = {};
  std::optional<Duration> time = {};
  std::optional<double> loss = {};
};

/// A named part of one node's parameters that updates as one: indices into the model's flat vector.
struct BlockSpec {
  std::string name;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< [offset, offset + count)
  std::int64_t count() const;
};

struct NodePlacement {
  std::string role;  ///< "stage 1 of 4", "worker", "server", …
  int first_layer = 0;
  int last_layer = 0;  ///< layers [first, last)
  std::vector<BlockSpec> blocks;
  std::vector<KernelSpec> kernels;  ///< every kernel it will charge, for profiles
  std::vector<int> sends_to;        ///< peers, ascending
};

struct Placement {
  std::vector<NodePlacement> nodes;
  std::string schedule;  ///< in words: what is sent when; "dynamic" where it depends on timing
};

/// A placement or an option that cannot be; what() says what would be right.
class PlacementError : public ValueError {
 public:
  using ValueError::ValueError;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Placement plan(const ClusterView& cluster, const WorkloadView& workload,
                         const Options& options, const StopRule& stop,
                         std::uint64_t seed) const = 0;
  /// Returns when the run is over on this node. Throws PeerLost or Error if it cannot go on.
  virtual void run(Node& node) const = 0;
};

struct StrategyInfo {
  std::string name;
  std::string description;  ///< one line
  std::string paper;        ///< source
  std::vector<OptionSpec> options;
  std::vector<std::string> stops;  ///< which stop rules it knows: "evaluations", "steps", …
  std::function<std::unique_ptr<Strategy>()> make;
  bool staged = false;              ///< the model is cut into stages, one a node
  bool counts_evaluations = false;  ///< progress is counted in evaluations, else in steps
  std::vector<std::string> node_options = {};  ///< text options that name a node
  /// Before a profile: says how the operations are measured that are this strategy's own
  /// (register_profiled()). Empty if it has none.
  std::function<void()> register_kernels = {};
};

/// All strategies, by name. A new one adds its file and one line in strategies/registry.cc.
const std::vector<StrategyInfo>& strategies();
/// nullptr if there is none of that name.
const StrategyInfo* find_strategy(const std::string& name);

}  // namespace orrery
