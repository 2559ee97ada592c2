// The canonical text of an experiment.
#include <charconv>
#include <nlohmann/json.hpp>

#include "emulator/config/load.hh"
#include "emulator/config/names.hh"
#include "emulator/config/network.hh"
#include "emulator/config/network_file.hh"

namespace orrery::config {
namespace {

/// A JSON string is a YAML string.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string exact(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

/// In the unit that reads best, if it reads back exactly from there.
std::string exact(Duration value) {
  const std::string text = to_string(value);
  return parse_duration(text) == value ? text : std::to_string(value.ns) + "ns";
}
std::string exact(BitRate value) {
  const std::string text = to_string(value);
  return parse_bit_rate(text) == value ? text : std::to_string(value.bits_per_second) + "bit/s";
}
std::string exact(Bytes value) {
  const std::string text = to_string(value);
  return parse_bytes(text) == value ? text : std::to_string(value.count) + "B";
}
std::string exact(Probability value) {
  const std::string text = to_string(value);
  return parse_probability(text) == value ? text : exact(value.value);
}
std::string exact(const Queue& queue) {
  if (const auto* time = std::get_if<Duration>(&queue)) return exact(*time);
  if (const auto* bytes = std::get_if<Bytes>(&queue)) return exact(*bytes);
  return to_string(queue);
}
std::string exact(const std::optional<BitRate>& rate) { return rate ? exact(*rate) : "unlimited"; }

template <typename T>
std::string all_or(const std::optional<T>& count) {
  return count ? std::to_string(*count) : "all";
}

/// `{a: 1, b: 2}`.
class FlowMap {
 public:
  FlowMap& add(const std::string& key, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + key + ": " + value;
    return *this;
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string flow(const BurstLoss& model) {
  FlowMap parts;
  if (const auto* two = std::get_if<netshape::GilbertElliott>(&model)) {
    parts.add("p", exact(two->to_bad))
        .add("r", exact(two->to_good))
        .add("loss_bad", exact(two->loss_bad))
        .add("loss_good", exact(two->loss_good));
    return FlowMap().add("gilbert_elliott", parts.text()).text();
  }
  const auto& four = std::get<netshape::FourState>(model);
  parts.add("p13", exact(four.p13))
      .add("p31", exact(four.p31))
      .add("p32", exact(four.p32))
      .add("p23", exact(four.p23))
      .add("p14", exact(four.p14));
  return FlowMap().add("four_state", parts.text()).text();
}

std::string flow(const LinkPatch& patch) {
  FlowMap map;
  if (patch.delay) map.add("delay", exact(*patch.delay));
  if (patch.jitter) map.add("jitter", exact(*patch.jitter));
  if (patch.distribution) map.add("distribution", name_of(*patch.distribution));
  if (patch.rate) map.add("rate", exact(*patch.rate));
  if (patch.keep_order) map.add("keep_order", *patch.keep_order ? "true" : "false");
  if (patch.loss) map.add("loss", exact(*patch.loss));
  if (patch.loss_burst) map.add("loss_burst", exact(*patch.loss_burst));
  if (patch.loss_model) map.add("loss_model", flow(*patch.loss_model));
  if (patch.duplicate) map.add("duplicate", exact(*patch.duplicate));
  if (patch.corrupt) map.add("corrupt", exact(*patch.corrupt));
  if (patch.reorder) map.add("reorder", exact(*patch.reorder));
  if (patch.queue) map.add("queue", exact(*patch.queue));
  if (patch.layer) map.add("layer", name_of(*patch.layer));
  return map.text();
}

LinkPatch whole(const Link& link) {
  LinkPatch patch;
  patch.delay = link.delay;
  patch.jitter = link.jitter;
  patch.distribution = link.distribution;
  patch.rate = link.rate;
  patch.keep_order = link.keep_order;
  if (link.loss_model) {
    patch.loss_model = link.loss_model;
  } else {
    patch.loss = link.loss;
    patch.loss_burst = link.loss_burst;
  }
  patch.duplicate = link.duplicate;
  patch.corrupt = link.corrupt;
  patch.reorder = link.reorder;
  patch.queue = link.queue;
  patch.layer = link.layer;
  return patch;
}

std::string nodes_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return "[" + text + "]";
}

class Writer {
 public:
  explicit Writer(const StrategyCatalog& strategies) : strategies_(strategies) {}

  std::string write_network(const Experiment& e) {
    line(0, "netshape: 1");
    std::string names;
    for (const ClusterNode& node : e.cluster.nodes)
      names += (names.empty() ? "" : ", ") + node.name;
    line(0, "nodes: [" + names + "]");
    line(0, "seed: " + std::to_string(e.seed));
    line(0, "network:");
    write_wires(spelt_out(e.cluster.network), 1);
    return std::move(out_);
  }

  std::string write(const Experiment& e) {
    line(0, "orrery: 1");
    line(0, "name: " + e.name);
    if (!e.description.empty()) line(0, "description: " + quoted(e.description));
    line(0, "seed: " + std::to_string(e.seed));
    write_cluster(e.cluster);
    write_workload(e.workload);
    if (!e.timeline.empty()) line(0, "timeline:");
    for (const Event& event : e.timeline) write_event(event);
    line(0, "evaluate: {every: " + std::to_string(e.evaluate_every) + "}");
    const auto& spans = e.record.first_spans;
    line(0, "record: {spans: " + (spans ? "first:" + std::to_string(*spans) : "all") + "}");
    line(0, "limits: {watchdog: " + exact(e.limits.watchdog) + ", stall: " + exact(e.limits.stall) +
                "}");
    line(0, "runs:");
    for (const Run& run : e.runs) write_run(run);
    return std::move(out_);
  }

 private:
  void line(std::size_t depth, const std::string& text) {
    out_ += std::string(2 * depth, ' ') + text + "\n";
  }

  void write_cluster(const Cluster& cluster) {
    line(0, "cluster:");
    line(1, "cost: " + name_of(cluster.cost));
    line(1, "devices:");
    for (const Device& device : cluster.devices) {
      FlowMap map;
      if (!device.profile.empty()) map.add("profile", device.profile);
      map.add("flops", to_string(device.flops))
          .add("memory_bandwidth", to_string(device.memory_bandwidth))
          .add("memory", exact(device.memory))
          .add("message_overhead", exact(device.message_overhead))
          .add("speed", exact(device.speed));
      line(2, device.name + ": " + map.text());
    }
    line(1, "nodes:");
    for (const ClusterNode& node : cluster.nodes)
      line(2, "- {name: " + node.name + ", device: " + node.device +
                  ", speed: " + exact(node.speed) + "}");
    line(1, "network:");
    const Network& network = cluster.network;
    if (!network.wires.empty()) {
      write_wires(network, 2);
      return;
    }
    line(2, "topology: " + name_of(network.topology));
    if (network.arity > 0) line(2, "arity: " + std::to_string(network.arity));
    if (network.topology != Shape::star) line(2, "trunk: " + flow(whole(network.trunk)));
    line(2, "links:");
    for (const Access& access : cluster.network.access) {
      line(3, "- node: " + access.node);
      line(4, "up: " + flow(whole(access.up)));
      line(4, "down: " + flow(whole(access.down)));
    }
  }

  void write_wires(const Network& network, std::size_t depth) {
    if (!network.switches.empty()) {
      std::string names;
      for (const std::string& name : network.switches) names += (names.empty() ? "" : ", ") + name;
      line(depth, "switches: [" + names + "]");
    }
    line(depth, "wires:");
    for (const Wire& wire : network.wires) {
      line(depth + 1, "- between: [" + wire.a + ", " + wire.b + "]");
      line(depth + 2, "forth: " + flow(whole(wire.forth)));
      line(depth + 2, "back: " + flow(whole(wire.back)));
    }
  }

  void write_workload(const Workload& w) {
    line(0, "workload:");
    line(1, "model: " + name_of(w.model));
    if (!w.layers.empty()) {
      std::string widths;
      for (const std::int64_t width : w.layers)
        widths += (widths.empty() ? "" : ", ") + std::to_string(width);
      line(1, "layers: [" + widths + "]");
    }
    line(1, "activation: " + name_of(w.activation));
    line(1, "dataset: " + w.dataset);
    if (!w.path.empty()) line(1, "path: " + quoted(w.path));
    line(1, "pool: " + std::to_string(w.pool));
    line(1, "objective_images: " + std::to_string(w.objective_images));
    line(1, "train_images: " + all_or(w.train_images));
    line(1, "test_images: " + all_or(w.test_images));
  }

  void write_event(const Event& event) {
    FlowMap map;
    if (!event.nodes.empty()) map.add("node", nodes_text(event.nodes));
    std::string action;
    if (const auto* slow = std::get_if<Slow>(&event.action)) {
      action = "slow";
      map.add("factor", exact(slow->factor));
    } else if (std::holds_alternative<Pause>(event.action)) {
      action = "pause";
    } else if (std::holds_alternative<Kill>(event.action)) {
      action = "kill";
    } else if (std::holds_alternative<Restart>(event.action)) {
      action = "restart";
    } else {
      const auto& change = std::get<LinkChange>(event.action);
      action = "link";
      if (change.between)
        map.add("between", "[" + change.between->first + ", " + change.between->second + "]");
      map.add("direction", name_of(change.direction));
      if (change.steps.empty()) {
        map.add("set", flow(change.set));
      } else {
        std::string steps;
        for (const LinkStep& step : change.steps)
          steps += (steps.empty() ? "{at: " : ", {at: ") + exact(step.at) +
                   ", set: " + flow(step.set) + "}";
        map.add("steps", "[" + steps + "]");
      }
    }
    if (event.lasts) map.add("for", exact(*event.lasts));
    line(1, "- name: " + event.name);
    line(2, "at: " + exact(Duration{event.at.ns}));
    line(2, action + ": " + map.text());
  }

  void write_run(const Run& run) {
    line(1, "- name: " + run.name);
    line(2, "group: " + run.group);
    line(2, "strategy: " + run.strategy);
    line(2, "seed: " + std::to_string(run.seed));
    const auto strategy = strategies_.find(run.strategy);
    if (strategy != strategies_.end() && !strategy->second.options.empty()) {
      line(2, "options:");
      for (const OptionSpec& spec : strategy->second.options)
        line(3, spec.name + ": " + option_text(spec, run.options.values().at(spec.name)));
    }
    FlowMap stop;
    if (run.stop.evaluations) stop.add("evaluations", std::to_string(*run.stop.evaluations));
    if (run.stop.steps) stop.add("steps", std::to_string(*run.stop.steps));
    if (run.stop.epochs) stop.add("epochs", exact(*run.stop.epochs));
    if (run.stop.time) stop.add("time", exact(*run.stop.time));
    if (run.stop.loss) stop.add("loss", exact(*run.stop.loss));
    line(2, "stop: " + stop.text());
    line(2, "evaluate: {every: " + std::to_string(run.evaluate_every) + "}");
    if (run.placement.empty()) return;
    line(2, "placement:");
    for (const Stage& stage : run.placement)
      line(3, "- {node: " + stage.node + ", layers: " + std::to_string(stage.layers) + "}");
  }

  static std::string option_text(const OptionSpec& spec, const OptionValue& value) {
    switch (spec.kind) {
      case OptionKind::boolean:
        return std::get<bool>(value) ? "true" : "false";
      case OptionKind::integer:
        return std::to_string(std::get<std::int64_t>(value));
      case OptionKind::number:
        return exact(std::get<double>(value));
      case OptionKind::duration:
        return exact(Duration{std::get<std::int64_t>(value)});
      case OptionKind::bytes:
        return exact(Bytes{std::get<std::int64_t>(value)});
      case OptionKind::bit_rate:
        return exact(BitRate{std::get<std::int64_t>(value)});
      case OptionKind::probability:
        return exact(Probability{std::get<double>(value)});
      case OptionKind::text:
      case OptionKind::choice:
        break;
    }
    return quoted(std::get<std::string>(value));
  }

  const StrategyCatalog& strategies_;
  std::string out_;
};

}  // namespace

std::string to_yaml(const Experiment& experiment, const StrategyCatalog& strategies) {
  return Writer(strategies).write(experiment);
}

std::string network_to_yaml(const Experiment& experiment) {
  const StrategyCatalog none;
  return Writer(none).write_network(experiment);
}

}  // namespace orrery::config
