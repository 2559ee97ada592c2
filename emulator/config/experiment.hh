// An experiment as plain values: what a valid file says, every default filled in, every range
// expanded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/option.hh"
#include "base/units.hh"
#include "emulator/config/quantities.hh"
#include "netshape/shapes.hh"

namespace orrery::config {

/// What a node computes with. Times are divided by `speed`.
struct Device {
  std::string name;
  std::string profile;  ///< the built-in profile that it started from; empty if none
  FlopRate flops;
  ByteRate memory_bandwidth;
  Bytes memory;
  Duration message_overhead;
  double speed = 1;
  bool operator==(const Device&) const = default;
};

struct ClusterNode {
  std::string name;
  std::string device;  ///< a Device's name
  double speed = 1;    ///< times the device's
  bool operator==(const ClusterNode&) const = default;
};

using netshape::BurstLoss;
using netshape::Distribution;
using netshape::Layer;

/// One direction of the link between a node and the switch.
struct Link {
  Duration delay;
  Duration jitter;
  Distribution distribution = Distribution::uniform;
  bool keep_order = true;
  std::optional<BitRate> rate;  ///< none: unlimited
  Probability loss;
  double loss_burst = 1;                ///< mean length of a run of losses; 1: independent
  std::optional<BurstLoss> loss_model;  ///< instead of the two above
  Probability duplicate;
  Probability corrupt;
  Probability reorder;
  Queue queue = Duration::milliseconds(50);
  Layer layer = Layer::wire;
  bool operator==(const Link&) const = default;
};

/// What one place of the file changes on a link; what it is silent about stays.
struct LinkPatch {
  std::optional<Duration> delay;
  std::optional<Duration> jitter;
  std::optional<Distribution> distribution;
  std::optional<bool> keep_order;
  std::optional<std::optional<BitRate>> rate;  ///< the inner none: unlimited
  std::optional<Probability> loss;             ///< ends a loss_model
  std::optional<double> loss_burst;
  std::optional<BurstLoss> loss_model;  ///< ends loss and loss_burst
  std::optional<Probability> duplicate;
  std::optional<Probability> corrupt;
  std::optional<Probability> reorder;
  std::optional<Queue> queue;
  std::optional<Layer> layer;
  Link applied_to(Link link) const;
  bool empty() const { return *this == LinkPatch{}; }
  bool operator==(const LinkPatch&) const = default;
};

/// A node's two directions: `up` from the node to the switch, `down` from the switch to the node.
struct Access {
  std::string node;
  Link up;
  Link down;
  bool operator==(const Access&) const = default;
};

using netshape::Shape;

/// A link that the file spells out, between two nodes or switches.
struct Wire {
  std::string a;
  std::string b;
  Link forth;  ///< from a to b
  Link back;
  bool operator==(const Wire&) const = default;
};

struct Network {
  Shape topology = Shape::star;
  std::int64_t arity = 0;      ///< of the shapes that take one
  Link trunk;                  ///< each link between two switches, both directions
  std::vector<Access> access;  ///< one a node, in the order of the nodes
  /// Where any are given, they are all the links there are; of the above, only the names of nodes
  /// mean something.
  std::vector<Wire> wires;
  std::vector<std::string> switches;  ///< that the wires join
  bool operator==(const Network&) const = default;
};

/// Where a kernel's emulated time comes from: a roofline of the device, or measured on the host.
enum class Cost { model, profile };

struct Cluster {
  Cost cost = Cost::profile;
  std::vector<Device> devices;
  std::vector<ClusterNode> nodes;
  Network network;
  const Device& device_of(const ClusterNode& node) const;
  /// What a node computes at, relative to its device's profile: device speed × node speed.
  double speed_of(const ClusterNode& node) const { return device_of(node).speed * node.speed; }
  bool operator==(const Cluster&) const = default;
};

enum class ModelKind { mlp, lenet5 };
enum class Activation { tanh, relu };

struct Workload {
  ModelKind model = ModelKind::mlp;
  std::vector<std::int64_t> layers;  ///< of an mlp: its widths, input and output included
  Activation activation = Activation::tanh;
  std::string dataset = "fashion-mnist";
  std::string path;       ///< a folder of IDX files; empty: the data set's own
  std::int64_t pool = 1;  ///< images are averaged over pool × pool pixels
  std::int64_t objective_images = 2000;
  std::optional<std::int64_t> train_images;  ///< none: all
  std::optional<std::int64_t> test_images;   ///< none: all
  /// The layers that hold parameters: what stages are cut from.
  std::int64_t layer_count() const;
  bool operator==(const Workload&) const = default;
};

enum class Direction { up, down, both };

/// Kernels take `factor` times as long.
struct Slow {
  double factor = 1;
  bool operator==(const Slow&) const = default;
};
/// The node stands still: it neither computes nor sends.
struct Pause {
  bool operator==(const Pause&) const = default;
};
/// The node's process ends as if by kill -9.
struct Kill {
  bool operator==(const Kill&) const = default;
};
/// A killed node's process starts again, with nothing in memory.
struct Restart {
  bool operator==(const Restart&) const = default;
};
struct LinkStep {
  Duration at;
  LinkPatch set;
  bool operator==(const LinkStep&) const = default;
};
struct LinkChange {
  Direction direction = Direction::both;
  /// In place of the event's nodes: the link between these two, whatever they are; `up` is from the
  /// first to the second.
  std::optional<std::pair<std::string, std::string>> between;
  LinkPatch set;
  /// In place of `set`: what is other from so long after the event's beginning on, until the next.
  std::vector<LinkStep> steps;

  /// What is other so long after the beginning.
  LinkPatch at(Duration since) const;
  bool operator==(const LinkChange&) const = default;
};

struct Event {
  std::string name;
  Instant at;
  std::vector<std::string> nodes;  ///< at least one, but for a change between two ends
  std::variant<Slow, Pause, Kill, Restart, LinkChange> action;
  std::optional<Duration> lasts;  ///< none: until the end of the run
  bool operator==(const Event&) const = default;
};

/// The run ends at the first that is reached; at least one besides `loss` is set.
struct Stop {
  std::optional<std::int64_t> evaluations;
  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::optional<Duration> time;  ///< emulated
  std::optional<double> loss;    ///< objective loss at or below
  bool operator==(const Stop&) const = default;
};

/// A stage of the model on a node: the next `layers` layers.
struct Stage {
  std::string node;
  std::int64_t layers = 0;
  bool operator==(const Stage&) const = default;
};

struct Run {
  std::string name;
  std::string group;  ///< runs of one group differ in their seed only
  std::string strategy;
  Options options;  ///< every option of the strategy
  Stop stop;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100;  ///< in evaluations or steps, whichever the strategy counts
  std::vector<Stage> placement;       ///< empty: the strategy's own
  friend bool operator==(const Run& a, const Run& b);
};

/// Which steps leave spans in the trace: none: all of them.
struct Record {
  std::optional<std::int64_t> first_spans;
  bool operator==(const Record&) const = default;
};

struct Limits {
  Duration watchdog = Duration::seconds(120);  ///< host time without progress of emulated time
  Duration stall = Duration::seconds(600);     ///< emulated time without progress of the run
  bool operator==(const Limits&) const = default;
};

struct Experiment {
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  Cluster cluster;
  Workload workload;
  std::vector<Event> timeline;  ///< in the order of the file
  std::vector<Run> runs;
  std::int64_t evaluate_every = 100;
  Record record;
  Limits limits;

  /// With only the run of that name, or the runs of that group; throws ValueError that names those
  /// which exist.
  Experiment select(const std::string& run) const;
  /// The same without that event of the timeline; throws ValueError that names those which exist.
  Experiment without(const std::string& event) const;
  bool operator==(const Experiment&) const = default;
};

/// Expands `board[0-3]` or `pi[00,02,08-10]`; a name without brackets is itself. Throws ValueError.
std::vector<std::string> expand_names(const std::string& range);

}  // namespace orrery::config
