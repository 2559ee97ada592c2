#include "emulator/config/read_experiment.hh"

#include <algorithm>
#include <map>

#include "emulator/config/device_profiles.hh"
#include "emulator/config/names.hh"
#include "emulator/config/network.hh"
#include "emulator/config/schema.hh"
#include "netshape/profiles.hh"

namespace orrery::config {
namespace {

/// Typed access to a map. A value that is missing or was reported leaves `out` as it is.
class Reader {
 public:
  Reader(const Node* map, const Diagnostics& diagnostics) : map_(map), diagnostics_(diagnostics) {}

  explicit operator bool() const { return map_ && map_->is_map(); }
  /// The sound scalar of that key; nullptr if there is none.
  const Node* scalar(const char* key) const {
    const Node* node = map_ ? map_->find(key) : nullptr;
    return node && node->is_scalar() && !diagnostics_.bad(*node) ? node : nullptr;
  }
  Reader map(const char* key) const {
    const Node* node = map_ ? map_->find(key) : nullptr;
    return {node && node->is_map() ? node : nullptr, diagnostics_};
  }
  const std::vector<Node>& list(const char* key) const {
    static const std::vector<Node> nothing;
    const Node* node = map_ ? map_->find(key) : nullptr;
    return node && node->is_list() ? node->items : nothing;
  }
  /// The names behind a node, a range, or a list of them.
  std::vector<std::string> nodes(const char* key) const {
    std::vector<std::string> names;
    const auto add = [&](const Node& node) {
      if (!node.is_scalar() || diagnostics_.bad(node)) return;
      for (std::string& name : expand_names(node.text)) names.push_back(std::move(name));
    };
    if (const Node* node = scalar(key)) add(*node);
    for (const Node& item : list(key)) add(item);
    return names;
  }
  const Node* node() const { return map_; }

  const Node* get(const char* key, std::string& out) const {
    return read(key, [&](const Node& n) { out = n.text; });
  }
  const Node* get(const char* key, bool& out) const {
    return read(key, [&](const Node& n) { out = read_boolean(n).value(); });
  }
  const Node* get(const char* key, double& out) const {
    return read(key, [&](const Node& n) { out = read_number(n).value(); });
  }
  const Node* get(const char* key, std::int64_t& out) const {
    return read(key, [&](const Node& n) { out = read_integer(n).value(); });
  }
  const Node* get(const char* key, std::uint64_t& out) const {
    return read(key, [&](const Node& n) { out = read_unsigned(n).value(); });
  }
  const Node* get(const char* key, Duration& out) const {
    return read(key, [&](const Node& n) { out = parse_duration(n.text); });
  }
  const Node* get(const char* key, Instant& out) const {
    return read(key, [&](const Node& n) { out = {parse_duration(n.text).ns}; });
  }
  const Node* get(const char* key, Bytes& out) const {
    return read(key, [&](const Node& n) { out = parse_bytes(n.text); });
  }
  const Node* get(const char* key, BitRate& out) const {
    return read(key, [&](const Node& n) { out = parse_bit_rate(n.text); });
  }
  const Node* get(const char* key, Probability& out) const {
    return read(key, [&](const Node& n) { out = parse_probability(n.text); });
  }
  const Node* get(const char* key, FlopRate& out) const {
    return read(key, [&](const Node& n) { out = parse_flop_rate(n.text); });
  }
  const Node* get(const char* key, ByteRate& out) const {
    return read(key, [&](const Node& n) { out = parse_byte_rate(n.text); });
  }
  const Node* get(const char* key, Queue& out) const {
    return read(key, [&](const Node& n) { out = parse_queue(n.text); });
  }
  template <typename E>
  requires std::is_enum_v<E>
  const Node* get(const char* key, E& out) const {
    return read(key, [&](const Node& n) { out = value_of<E>(n.text); });
  }
  template <typename T>
  const Node* get(const char* key, std::optional<T>& out) const {
    T value{};
    const Node* node = get(key, value);
    if (node) out = value;
    return node;
  }
  /// `word` stands for none.
  template <typename T>
  const Node* get_unless(const char* key, const char* word, std::optional<T>& out) const {
    const Node* node = scalar(key);
    if (node && node->text == word) {
      out.reset();
      return node;
    }
    return get(key, out);
  }

 private:
  template <typename F>
  const Node* read(const char* key, F&& convert) const {
    const Node* node = scalar(key);
    if (node) convert(*node);
    return node;
  }

  const Node* map_;
  const Diagnostics& diagnostics_;
};

class ExperimentReader {
 public:
  ExperimentReader(const StrategyCatalog& strategies, const Diagnostics& diagnostics)
      : strategies_(strategies), diagnostics_(diagnostics) {}

  Read read(const Node& root) {
    const Reader top = reader(root);
    Experiment& e = experiment();
    top.get("name", e.name);
    top.get("description", e.description);
    top.get("seed", e.seed);
    top.map("evaluate").get("every", e.evaluate_every);
    read_record(top.map("record"));
    top.map("limits").get("watchdog", e.limits.watchdog);
    top.map("limits").get("stall", e.limits.stall);
    read_cluster(top.map("cluster"));
    read_workload(top.map("workload"));
    for (const Node& event : top.list("timeline")) read_event(event);
    for (const Node& run : top.list("runs")) read_run(run);
    return std::move(read_);
  }

 private:
  struct TracedLink {
    Link link;
    LinkOrigin origin;
  };

  Experiment& experiment() { return read_.experiment; }
  Reader reader(const Node& node) const { return {&node, diagnostics_}; }

  void read_record(const Reader& record) {
    const Node* spans = record.scalar("spans");
    if (!spans || spans->text == "all") return;
    experiment().record.first_spans =
        spans->text == "none" ? 0 : std::stoll(spans->text.substr(std::string("first:").size()));
  }

  void read_cluster(const Reader& cluster) {
    Cluster& c = experiment().cluster;
    cluster.get("cost", c.cost);
    read_devices(cluster);
    const Node* nodes = cluster ? cluster.node()->find("nodes") : nullptr;
    read_.origins.nodes_sound = nodes && nodes->is_list() && !any_bad(*nodes, diagnostics_);
    for (const Node& item : cluster.list("nodes")) read_nodes(reader(item));
    read_network(cluster.map("network"));
  }

  void read_devices(const Reader& cluster) {
    const Node* devices = cluster ? cluster.node()->find("devices") : nullptr;
    read_.origins.devices_sound = cluster && (!devices || !any_bad(*devices, diagnostics_));
    if (!devices || !devices->is_map()) return;
    read_.origins.devices = devices;
    for (const Entry& entry : devices->entries) {
      const Reader from = reader(entry.value);
      Device device;
      device.name = entry.key;
      from.get("profile", device.profile);
      if (const DeviceProfile* profile = find_device_profile(device.profile))
        device = from_profile(*profile, entry.key);
      from.get("flops", device.flops);
      from.get("memory_bandwidth", device.memory_bandwidth);
      from.get("memory", device.memory);
      from.get("message_overhead", device.message_overhead);
      from.get("speed", device.speed);
      experiment().cluster.devices.push_back(std::move(device));
    }
  }

  static Device from_profile(const DeviceProfile& profile, std::string name) {
    Device device;
    device.name = std::move(name);
    device.profile = profile.name;
    device.flops = profile.flops;
    device.memory_bandwidth = profile.memory_bandwidth;
    device.memory = profile.memory;
    device.message_overhead = profile.message_overhead;
    return device;
  }

  void read_nodes(const Reader& from) {
    Cluster& c = experiment().cluster;
    const Node* name = from.scalar("name");
    if (!name) return;
    ClusterNode node;
    const Node* device = from.get("device", node.device);
    from.get("speed", node.speed);
    add_built_in_device(node.device);
    for (const std::string& each : expand_names(name->text)) {
      node.name = each;
      c.nodes.push_back(node);
      read_.origins.nodes.push_back({name, device});
    }
  }

  /// A node may name a built-in device that `devices` does not hold.
  void add_built_in_device(const std::string& name) {
    std::vector<Device>& devices = experiment().cluster.devices;
    const DeviceProfile* profile = find_device_profile(name);
    const bool known = std::any_of(devices.begin(), devices.end(),
                                   [&](const Device& device) { return device.name == name; });
    if (profile && !known) devices.push_back(from_profile(*profile, name));
  }

  static BurstLoss read_loss_model(const Reader& from) {
    if (const Reader four = from.map("four_state")) {
      netshape::FourState model;
      model.p23 = {1};
      four.get("p13", model.p13);
      four.get("p31", model.p31);
      four.get("p32", model.p32);
      four.get("p23", model.p23);
      four.get("p14", model.p14);
      return model;
    }
    netshape::GilbertElliott model;
    const Reader two = from.map("gilbert_elliott");
    two.get("p", model.to_bad);
    two.get("r", model.to_good);
    two.get("loss_bad", model.loss_bad);
    two.get("loss_good", model.loss_good);
    return model;
  }

  LinkPatch read_patch(const Reader& from, LinkOrigin& origin) const {
    LinkPatch patch;
    const auto note = [](const Node*& where, const Node* node) {
      if (node) where = node;
    };
    note(origin.delay, from.get("delay", patch.delay));
    note(origin.jitter, from.get("jitter", patch.jitter));
    from.get("distribution", patch.distribution);
    from.get("keep_order", patch.keep_order);
    std::optional<BitRate> rate;
    const Node* written = from.get_unless("rate", "unlimited", rate);
    note(origin.rate, written);
    if (written) patch.rate = rate;
    note(origin.loss, from.get("loss", patch.loss));
    note(origin.loss, from.get("loss_burst", patch.loss_burst));
    if (const Reader model = from.map("loss_model")) {
      patch.loss_model = read_loss_model(model);
      note(origin.loss, model.node());
    }
    from.get("duplicate", patch.duplicate);
    from.get("corrupt", patch.corrupt);
    note(origin.reorder, from.get("reorder", patch.reorder));
    from.get("queue", patch.queue);
    from.get("layer", patch.layer);
    return patch;
  }

  /// Which direction of a profile is meant.
  enum class Way { up, down };

  void apply(const Reader& from, Link& link, LinkOrigin& origin, Way way) const {
    if (!from) return;
    std::string name;
    from.get("profile", name);
    if (const netshape::LinkProfile* profile = netshape::find_link_profile(name))
      link = link_of(way == Way::up ? profile->up : profile->down);
    link = read_patch(from, origin).applied_to(link);
  }

  void read_network(const Reader& from) {
    Network& network = experiment().cluster.network;
    read_.origins.topology = from.get("topology", network.topology);
    read_.origins.arity = from.get("arity", network.arity);
    read_.origins.trunk_map = from.map("trunk").node();
    apply(from.map("trunk"), network.trunk, read_.origins.trunk, Way::down);
    TracedLink up;
    TracedLink down;
    apply(from.map("link"), up.link, up.origin, Way::up);
    apply(from.map("link"), down.link, down.origin, Way::down);
    for (const ClusterNode& node : experiment().cluster.nodes) {
      access_of_.emplace(node.name, network.access.size());
      network.access.push_back({node.name, up.link, down.link});
      read_.origins.up.push_back(up.origin);
      read_.origins.down.push_back(down.origin);
    }
    read_wires(from, up, down);
    // Then no node has a link of its own.
    if (read_.origins.wires_list)
      for (Access& access : network.access) access.up = access.down = Link{};
    for (const Node& item : from.list("links")) {
      read_.origins.link_maps.push_back(&item);
      const Reader entry = reader(item);
      for (const std::string& name : entry.nodes("node")) read_access(entry, name);
    }
  }

  void read_wires(const Reader& from, const TracedLink& forth, const TracedLink& back) {
    Network& network = experiment().cluster.network;
    network.switches = from.nodes("switches");
    read_.origins.switches = from ? from.node()->find("switches") : nullptr;
    read_.origins.wires_list = from ? from.node()->find("wires") : nullptr;
    read_.origins.wires_sound =
        read_.origins.wires_list && !any_bad(*read_.origins.wires_list, diagnostics_);
    for (const Node& item : from.list("wires")) {
      const Reader entry = reader(item);
      const std::vector<Node>& ends = entry.list("between");
      if (ends.size() != 2 || any_bad(item, diagnostics_)) continue;
      for (const std::string& a : expand_names(ends[0].text))
        for (const std::string& b : expand_names(ends[1].text)) read_wire(entry, a, b, forth, back);
    }
  }

  void read_wire(const Reader& entry, const std::string& a, const std::string& b,
                 const TracedLink& forth, const TracedLink& back) {
    std::vector<Wire>& wires = experiment().cluster.network.wires;
    std::size_t at = 0;
    const auto joins = [&](const Wire& w) {
      return (w.a == a && w.b == b) || (w.a == b && w.b == a);
    };
    while (at < wires.size() && !joins(wires[at])) ++at;
    if (at == wires.size()) {
      wires.push_back({a, b, forth.link, back.link});
      read_.origins.wires.push_back({entry.node(), forth.origin, back.origin});
    }
    Wire& wire = wires[at];
    Origins::WireOrigin& origin = read_.origins.wires[at];
    // As this entry sees it: another may have named the ends the other way round.
    const bool as_written = wire.a == a;
    Link& there = as_written ? wire.forth : wire.back;
    Link& here = as_written ? wire.back : wire.forth;
    LinkOrigin& of_there = as_written ? origin.forth : origin.back;
    LinkOrigin& of_here = as_written ? origin.back : origin.forth;
    apply(entry.map("both"), there, of_there, Way::up);
    apply(entry.map("both"), here, of_here, Way::down);
    apply(entry.map("forth"), there, of_there, Way::up);
    apply(entry.map("back"), here, of_here, Way::down);
  }

  void read_access(const Reader& entry, const std::string& name) {
    const auto [first, last] = access_of_.equal_range(name);
    for (auto found = first; found != last; ++found) {
      const std::size_t i = found->second;
      Access& access = experiment().cluster.network.access[i];
      apply(entry.map("both"), access.up, read_.origins.up[i], Way::up);
      apply(entry.map("both"), access.down, read_.origins.down[i], Way::down);
      apply(entry.map("up"), access.up, read_.origins.up[i], Way::up);
      apply(entry.map("down"), access.down, read_.origins.down[i], Way::down);
    }
  }

  void read_workload(const Reader& from) {
    Workload& w = experiment().workload;
    read_.origins.workload = from.node();
    read_.origins.workload_sound = from && !any_bad(*from.node(), diagnostics_);
    from.get("model", w.model);
    for (const Node& layer : from.list("layers"))
      w.layers.push_back(read_integer(layer).value_or(0));
    from.get("activation", w.activation);
    from.get("dataset", w.dataset);
    from.get("path", w.path);
    from.get("pool", w.pool);
    from.get("objective_images", w.objective_images);
    from.get_unless("train_images", "all", w.train_images);
    from.get_unless("test_images", "all", w.test_images);
  }

  void read_event(const Node& map) {
    const Reader from = reader(map);
    Event event;
    Origins::EventOrigin origin{&map, nullptr, nullptr,
                                map.is_map() && !any_bad(map, diagnostics_)};
    origin.name = from.get("name", event.name);
    from.get("at", event.at);
    read_action(from, event, origin);
    experiment().timeline.push_back(std::move(event));
    read_.origins.events.push_back(origin);
  }

  void read_action(const Reader& from, Event& event, Origins::EventOrigin& origin) const {
    for (const char* key : {"slow", "pause", "kill", "restart", "link"}) {
      const Reader action = from.map(key);
      if (!action) continue;
      origin.action = action.node();
      const std::string_view kind = key;
      event.nodes = action.nodes("node");
      action.get("for", event.lasts);
      if (kind == "slow") {
        Slow slow;
        action.get("factor", slow.factor);
        event.action = slow;
      } else if (kind == "pause") {
        event.action = Pause{};
      } else if (kind == "kill") {
        event.action = Kill{};
      } else if (kind == "restart") {
        event.action = Restart{};
      } else {
        LinkChange change;
        LinkOrigin unused;
        action.get("direction", change.direction);
        const std::vector<std::string> ends = action.nodes("between");
        if (ends.size() == 2) change.between = {ends[0], ends[1]};
        change.set = read_patch(action.map("set"), unused);
        for (const Node& item : action.list("steps")) {
          LinkStep step;
          reader(item).get("at", step.at);
          step.set = read_patch(reader(item).map("set"), unused);
          change.steps.push_back(std::move(step));
        }
        event.action = change;
      }
      return;
    }
  }

  void read_run(const Node& map) {
    const Reader from = reader(map);
    Run run;
    const bool sound = map.is_map() && !any_bad(map, diagnostics_);
    from.get("name", run.name);
    run.group = run.name;
    from.get("group", run.group);
    from.get("strategy", run.strategy);
    run.seed = experiment().seed;
    run.evaluate_every = experiment().evaluate_every;
    from.map("evaluate").get("every", run.evaluate_every);
    read_options(from.map("options"), run);
    read_stop(from.map("stop"), run.stop);
    for (const Node& item : from.list("placement")) {
      Stage stage;
      reader(item).get("node", stage.node);
      reader(item).get("layers", stage.layers);
      run.placement.push_back(std::move(stage));
    }

    std::vector<std::uint64_t> seeds;
    for (const Node& seed : from.list("seeds"))
      if (const auto value = read_unsigned(seed)) seeds.push_back(*value);
    std::int64_t count = 0;
    if (from.get("seeds", count))
      for (std::int64_t i = 0; i < count; ++i)
        seeds.push_back(run.seed + static_cast<std::uint64_t>(i));
    if (seeds.empty()) {
      from.get("seed", run.seed);
      add_run(run, map, sound);
    }
    for (const std::uint64_t seed : seeds) {
      Run each = run;
      each.seed = seed;
      each.name += "-seed" + std::to_string(seed);
      add_run(each, map, sound);
    }
  }

  void add_run(const Run& run, const Node& map, bool sound) {
    experiment().runs.push_back(run);
    read_.origins.runs.push_back({&map, sound});
  }

  static void read_stop(const Reader& from, Stop& stop) {
    from.get("evaluations", stop.evaluations);
    from.get("steps", stop.steps);
    from.get("epochs", stop.epochs);
    from.get("time", stop.time);
    from.get("loss", stop.loss);
  }

  void read_options(const Reader& from, Run& run) const {
    const auto strategy = strategies_.find(run.strategy);
    if (strategy == strategies_.end()) return;
    run.options = Options(strategy->second.options);
    for (const OptionSpec& spec : strategy->second.options)
      if (const Node* node = from.scalar(spec.name.c_str()))
        run.options.set(spec.name, option_value(spec, *node));
  }

  static OptionValue option_value(const OptionSpec& spec, const Node& node) {
    switch (spec.kind) {
      case OptionKind::boolean:
        return read_boolean(node).value();
      case OptionKind::integer:
        return read_integer(node).value();
      case OptionKind::number:
        return read_number(node).value();
      case OptionKind::duration:
        return parse_duration(node.text).ns;
      case OptionKind::bytes:
        return parse_bytes(node.text).count;
      case OptionKind::bit_rate:
        return parse_bit_rate(node.text).bits_per_second;
      case OptionKind::probability:
        return parse_probability(node.text).value;
      case OptionKind::text:
      case OptionKind::choice:
        break;
    }
    return node.text;
  }

  const StrategyCatalog& strategies_;
  const Diagnostics& diagnostics_;
  std::multimap<std::string, std::size_t> access_of_;  ///< several only where a name is there twice
  Read read_;
};

}  // namespace

bool any_bad(const Node& node, const Diagnostics& diagnostics) {
  if (node.incomplete || diagnostics.bad(node)) return true;
  for (const Node& item : node.items)
    if (any_bad(item, diagnostics)) return true;
  for (const Entry& entry : node.entries)
    if (any_bad(entry.value, diagnostics)) return true;
  return false;
}

Read read_experiment(const Node& root, const StrategyCatalog& strategies,
                     const Diagnostics& diagnostics) {
  return ExperimentReader(strategies, diagnostics).read(root);
}

}  // namespace orrery::config
