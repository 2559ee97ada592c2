// What an experiment means: names that exist, links that carry, events and placements that can be.
#include <algorithm>
#include <map>
#include <set>

#include "emulator/config/device_profiles.hh"
#include "emulator/config/names.hh"
#include "emulator/config/network.hh"
#include "emulator/config/read_experiment.hh"
#include "emulator/config/schema.hh"

namespace orrery::config {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& word : words) {
    if (++shown > 12) return text + ", …";
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

/// "did you mean 'board2'?" or the names that there are.
std::string instead_of(const std::string& name, const std::vector<std::string>& known,
                       const std::string& what) {
  if (const auto near = nearest(name, known)) return "did you mean '" + *near + "'?";
  return known.empty() ? "there are no " + what : "the " + what + " are " + joined(known);
}

const Node& find_or(const Node& map, const char* key) {
  const Node* found = map.find(key);
  return found ? *found : map;
}

std::string seconds(Instant at) { return to_string(Duration{at.ns}); }

class Checker {
 public:
  Checker(const Read& read, const StrategyCatalog& strategies, Diagnostics& diagnostics)
      : experiment_(read.experiment),
        origins_(read.origins),
        strategies_(strategies),
        diagnostics_(diagnostics) {
    for (const ClusterNode& node : experiment_.cluster.nodes) node_names_.push_back(node.name);
    node_set_.insert(node_names_.begin(), node_names_.end());
  }

  void check() {
    check_devices();
    check_nodes();
    check_links();
    check_shape();
    check_workload();
    check_timeline();
    check_runs();
  }

 private:
  bool known_node(const std::string& name) const { return node_set_.count(name) != 0; }

  /// Reports the first of the names that is no node, at `at`.
  void need_nodes(const std::vector<std::string>& names, const Node& at) {
    if (!origins_.nodes_sound) return;
    for (const std::string& name : names) {
      if (known_node(name)) continue;
      diagnostics_.error(
          at, "there is no node '" + name + "'; " + instead_of(name, node_names_, "nodes"));
      return;
    }
  }

  /// The same for a node, a range, or a list of them.
  void need_nodes(const Node& names) {
    for (const Node& item : names.items) need_nodes(item);
    if (names.is_scalar() && !diagnostics_.bad(names)) need_nodes(expand_names(names.text), names);
  }

  void check_devices() {
    if (!origins_.devices_sound || origins_.devices == nullptr) return;
    for (const Entry& entry : origins_.devices->entries) {
      if (entry.value.find("profile")) continue;
      for (const char* key : {"flops", "memory_bandwidth", "memory"})
        if (!entry.value.find(key))
          diagnostics_.error(entry.place, "device '" + entry.key + "' has neither a profile nor `" +
                                              key + "`; add one of them");
    }
  }

  void check_nodes() {
    const Cluster& cluster = experiment_.cluster;
    std::vector<std::string> devices;
    for (const Device& device : cluster.devices) devices.push_back(device.name);
    std::vector<std::string> candidates = devices;
    for (const DeviceProfile& profile : device_profiles()) candidates.emplace_back(profile.name);

    std::map<std::string, const Node*> seen;
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      const ClusterNode& node = cluster.nodes[i];
      const Origins::NodeOrigin& origin = origins_.nodes[i];
      const auto [first, fresh] = seen.emplace(node.name, origin.name);
      if (!fresh)
        diagnostics_.error(*origin.name, "node '" + node.name + "' is here twice, first at line " +
                                             std::to_string(first->second->place.line) +
                                             "; give each its own name");
      if (origin.device && origins_.devices_sound &&
          std::find(devices.begin(), devices.end(), node.device) == devices.end())
        diagnostics_.error(*origin.device, "there is no device '" + node.device + "'; " +
                                               instead_of(node.device, candidates, "devices"));
    }
  }

  void check_links() {
    for (const Node* map : origins_.link_maps) {
      if (const Node* names = map->find("node")) need_nodes(*names);
    }
    if (origins_.wires_list) return;
    const std::vector<Access>& access = experiment_.cluster.network.access;
    for (std::size_t i = 0; i < access.size(); ++i) {
      check_link(access[i].node, "up", access[i].up, origins_.up[i]);
      check_link(access[i].node, "down", access[i].down, origins_.down[i]);
    }
  }

  bool known_end(const std::string& name) const {
    const std::vector<std::string>& switches = experiment_.cluster.network.switches;
    return known_node(name) || std::find(switches.begin(), switches.end(), name) != switches.end();
  }

  void check_wires() {
    const Network& network = experiment_.cluster.network;
    if (!origins_.wires_sound || !origins_.nodes_sound) return;
    std::vector<std::string> ends = node_names_;
    ends.insert(ends.end(), network.switches.begin(), network.switches.end());
    bool all_known = true;
    for (std::size_t i = 0; i < network.wires.size(); ++i) {
      const Wire& wire = network.wires[i];
      const Origins::WireOrigin& origin = origins_.wires[i];
      for (const std::string& name : {wire.a, wire.b}) {
        if (known_end(name)) continue;
        all_known = false;
        if (!reported_.insert(origin.map).second) continue;
        diagnostics_.error(find_or(*origin.map, "between"),
                           "there is no node and no switch '" + name + "'; " +
                               instead_of(name, ends, "nodes and switches") +
                               "; or name it in `switches`");
      }
      check_link("", "link from " + wire.a + " to " + wire.b, wire.forth, origin.forth);
      check_link("", "link from " + wire.b + " to " + wire.a, wire.back, origin.back);
    }
    if (!all_known || node_set_.size() != node_names_.size()) return;
    netshape::Topology topology;
    topology.nodes = node_names_;
    topology.switches = network.switches;
    for (const Wire& wire : network.wires) topology.links.push_back({wire.a, wire.b, {}, {}});
    for (const std::string& problem : netshape::problems(topology))
      diagnostics_.error(*origins_.wires_list, problem);
  }

  void check_shape() {
    const Network& network = experiment_.cluster.network;
    if (origins_.wires_list) {
      check_wires();
      return;
    }
    if (origins_.switches)
      diagnostics_.error(*origins_.switches,
                         "`switches` are for `wires`; a topology by name has its own; remove it");
    const Node* at = origins_.arity ? origins_.arity : origins_.topology;
    const std::string name = name_of(network.topology);
    if (origins_.trunk_map && network.topology == Shape::star)
      diagnostics_.error(*origins_.trunk_map,
                         "a star has one switch, so no link between two; remove `trunk`");
    if (origins_.arity && netshape::arity_meaning(network.topology).empty()) {
      diagnostics_.error(*at, "a " + name + " takes no arity; remove it");
      return;
    }
    if (!at || !origins_.nodes_sound) return;
    if (!origins_.arity && !netshape::arity_meaning(network.topology).empty()) {
      diagnostics_.error(*at, "a " + name + " needs an arity, " +
                                  std::string(netshape::arity_meaning(network.topology)) +
                                  "; write it beside `topology`");
      return;
    }
    std::vector<netshape::StarNode> nodes;
    for (const std::string& node : node_names_) nodes.push_back({node, {}, {}});
    try {
      const netshape::Topology made =
          netshape::make_shape(network.topology, std::move(nodes), {}, network.arity);
      for (const std::string& problem : netshape::problems(made))
        if (node_set_.size() == node_names_.size()) diagnostics_.error(*at, problem);
    } catch (const ValueError& error) {
      diagnostics_.error(*at, error.what());
    }
    if (origins_.trunk_map) check_link("", "trunk", network.trunk, origins_.trunk);
  }

  void check_link(const std::string& node, const std::string& direction, const Link& link,
                  const LinkOrigin& origin) {
    check_jitter(link, origin.jitter ? origin.jitter : origin.delay);
    const auto cut = [&](const Node* at, const std::string& why) {
      if (at && reported_.insert(at).second)
        diagnostics_.error(
            *at,
            (node.empty() ? "every " + direction + " "
                          : "node '" + node + "' is disconnected: its link " + direction + " ") +
                why + "; for a failure that passes write an event in the timeline");
    };
    if (link.rate && link.rate->bits_per_second == 0) cut(origin.rate, "has no rate");
    if (link.loss.value >= 1) cut(origin.loss, "loses every packet");
    if (link.loss_model) {
      for (const std::string& problem : netshape::problems(*link.loss_model))
        if (origin.loss && reported_.insert(origin.loss).second)
          diagnostics_.error(*origin.loss, problem);
      if (netshape::mean_loss(*link.loss_model) >= 1) cut(origin.loss, "loses every packet");
    }
    if (link.reorder.value > 0 && link.delay.ns == 0 && origin.reorder &&
        reported_.insert(origin.reorder).second)
      diagnostics_.error(*origin.reorder,
                         "packets that skip the delay need a delay; write one beside it");
  }

  /// netem sends at once what would have left before it came, so the mean rises.
  void check_jitter(const Link& link, const Node* at) {
    const std::int64_t times = netshape::reach_below(link.distribution);
    if (!at || link.jitter.ns == 0 || link.delay.ns / times >= link.jitter.ns) return;
    if (!reported_.insert(at).second) return;
    const std::string most = to_string(Duration{link.delay.ns / times});
    diagnostics_.error(
        *at, "a jitter of " + to_string(link.jitter) + " does not fit a delay of " +
                 to_string(link.delay) + ": a packet cannot leave before it came; write " +
                 (link.delay.ns == 0 ? "a delay of at least "
                                     : "at most " + most + ", or a delay of at least ") +
                 to_string(Duration{link.jitter.ns * times}) + " (" + std::to_string(times) +
                 " × jitter where it is " + name_of(link.distribution) + ")");
  }

  void check_workload() {
    if (!origins_.workload_sound) return;
    const Workload& w = experiment_.workload;
    const Node& map = *origins_.workload;
    const Node* layers = map.find("layers");
    if (w.model != ModelKind::mlp) {
      if (layers)
        diagnostics_.error(*layers, "`layers` is for an mlp, and the model is " + name_of(w.model) +
                                        "; remove it");
      return;
    }
    if (!layers) {
      diagnostics_.error(map,
                         "an mlp has no `layers`; add its widths from input to output, as in "
                         "layers: [196, 32, 10]");
      return;
    }
    // A folder of one's own may hold images of any size.
    if (!w.path.empty()) return;
    if (28 % w.pool != 0) {
      diagnostics_.error(find_or(map, "pool"),
                         "images of 28×28 pixels cannot be cut into squares of " +
                             std::to_string(w.pool) + "; write 1, 2, 4, 7 or 14");
      return;
    }
    const std::int64_t side = 28 / w.pool;
    if (w.layers.front() != side * side)
      diagnostics_.error(layers->items.front(),
                         "the first width is " + std::to_string(w.layers.front()) +
                             ", but an image has " + std::to_string(side) + "×" +
                             std::to_string(side) + " pixels (pool " + std::to_string(w.pool) +
                             "); write " + std::to_string(side * side));
    if (w.layers.back() != 10)
      diagnostics_.error(layers->items.back(), "the last width is " +
                                                   std::to_string(w.layers.back()) + ", but " +
                                                   w.dataset + " has 10 classes; write 10");
    const std::int64_t images = w.train_images.value_or(60'000);
    if (w.objective_images > images)
      diagnostics_.error(find_or(map, "objective_images"),
                         "the objective has " + std::to_string(w.objective_images) +
                             " images, but the training set " + std::to_string(images) +
                             "; write at most that");
  }

  void check_timeline() {
    std::map<std::string, const Node*> seen;
    for (std::size_t i = 0; i < experiment_.timeline.size(); ++i) {
      const Event& event = experiment_.timeline[i];
      const Origins::EventOrigin& origin = origins_.events[i];
      if (origin.name) {
        const auto [first, fresh] = seen.emplace(event.name, origin.name);
        if (!fresh)
          diagnostics_.error(*origin.name, "event '" + event.name +
                                               "' is here twice, first at line " +
                                               std::to_string(first->second->place.line) +
                                               "; give each its own name");
      }
      if (!origin.sound) continue;
      if (const Node* names = origin.action->find("node")) need_nodes(*names);
      check_between(event, origin);
      check_event(event, origin);
      check_overlaps(i);
    }
    check_lives();
  }

  void check_event(const Event& event, const Origins::EventOrigin& origin) {
    if (std::holds_alternative<Pause>(event.action) && !event.lasts)
      diagnostics_.warning(origin.action->place,
                           "the pause '" + event.name +
                               "' lasts until the run ends; add `for: 5s` if it shall pass");
    const auto* change = std::get_if<LinkChange>(&event.action);
    if (!change) return;
    const std::vector<Ends> links = touched_by(event, *change);
    if (change->steps.empty()) {
      const Node& set = find_or(*origin.action, "set");
      if (change->set.empty())
        diagnostics_.error(set, "nothing is set; write what changes, as in rate: 5Mbit/s");
      check_patch(change->set, set, links);
    }
    const std::vector<Node>& items = find_or(*origin.action, "steps").items;
    for (std::size_t i = 0; i < change->steps.size() && i < items.size(); ++i) {
      if (i > 0 && change->steps[i].at <= change->steps[i - 1].at)
        diagnostics_.error(find_or(items[i], "at"), "the steps' times do not ascend; sort them");
      if (event.lasts && change->steps[i].at >= *event.lasts)
        diagnostics_.error(find_or(items[i], "at"),
                           "this step comes when the event is over; write a longer `for`");
      check_patch(change->steps[i].set, find_or(items[i], "set"), links);
    }
  }

  void check_patch(const LinkPatch& patch, const Node& set, const std::vector<Ends>& links) {
    if (patch.rate && *patch.rate && (*patch.rate)->bits_per_second == 0)
      diagnostics_.error(find_or(set, "rate"),
                         "a rate of zero holds packets for ever; to cut the link write loss: 100%");
    const Node* at = set.find("jitter") ? set.find("jitter") : set.find("delay");
    for (const Ends& ends : links)
      check_jitter(patch.applied_to(link_between(experiment_.cluster.network, ends)), at);
  }

  /// Nothing where the network itself is wrong, which is reported elsewhere.
  std::vector<Ends> touched_by(const Event& event, const LinkChange& change) const {
    if (origins_.wires_list && !origins_.wires_sound) return {};
    try {
      return touched(topology_of(experiment_.cluster.network), event, change);
    } catch (const ValueError&) {
      return {};
    }
  }

  void check_between(const Event& event, const Origins::EventOrigin& origin) {
    const auto* change = std::get_if<LinkChange>(&event.action);
    if (!change || !change->between || !origins_.nodes_sound) return;
    if (origins_.wires_list && !origins_.wires_sound) return;
    netshape::Topology topology;
    try {
      topology = topology_of(experiment_.cluster.network);
    } catch (const ValueError&) {
      return;
    }
    const auto& [a, b] = *change->between;
    if (!directions_of(topology, a, Direction::up).empty() &&
        !touched(topology, event, *change).empty())
      return;
    std::vector<std::string> links;
    for (const netshape::Link& link : topology.links) links.push_back(link.a + " - " + link.b);
    diagnostics_.error(find_or(*origin.action, "between"),
                       "no link joins '" + a + "' and '" + b + "'; the links are " + joined(links));
  }

  /// True if at some instant both are in force.
  static bool overlap(const Event& a, const Event& b) {
    const auto ends_before = [](const Event& first, const Event& second) {
      return first.lasts && first.at + *first.lasts <= second.at;
    };
    return !ends_before(a, b) && !ends_before(b, a);
  }

  static std::optional<std::string> common_node(const Event& a, const Event& b) {
    for (const std::string& name : a.nodes)
      if (std::find(b.nodes.begin(), b.nodes.end(), name) != b.nodes.end()) return name;
    return {};
  }

  /// A node of both, or a direction of a link.
  std::optional<std::string> common_target(const Event& a, const Event& b) const {
    const auto* first = std::get_if<LinkChange>(&a.action);
    const auto* second = std::get_if<LinkChange>(&b.action);
    if (!first || !second || (!first->between && !second->between)) return common_node(a, b);
    const std::vector<Ends> others = touched_by(b, *second);
    for (const Ends& ends : touched_by(a, *first))
      if (std::find(others.begin(), others.end(), ends) != others.end())
        return netshape::link_name(ends.from, ends.to);
    return {};
  }

  /// The first property that both set, in a direction that both touch.
  static std::optional<std::string> common_property(const LinkChange& a, const LinkChange& b) {
    const bool apart = !a.between && !b.between &&
                       ((a.direction == Direction::up && b.direction == Direction::down) ||
                        (a.direction == Direction::down && b.direction == Direction::up));
    if (apart) return {};
    // Of steps any may be in force.
    if (!a.steps.empty() || !b.steps.empty()) return "figures";
    if (a.set.delay && b.set.delay) return "delay";
    if (a.set.jitter && b.set.jitter) return "jitter";
    if (a.set.distribution && b.set.distribution) return "distribution";
    if (a.set.rate && b.set.rate) return "rate";
    if (a.set.loss && b.set.loss) return "loss";
    if (a.set.queue && b.set.queue) return "queue";
    if (a.set.layer && b.set.layer) return "layer";
    return {};
  }

  /// Two changes of the same thing at the same time: what holds when the first ends is anyone's
  /// guess.
  void check_overlaps(std::size_t index) {
    const Event& event = experiment_.timeline[index];
    for (std::size_t i = 0; i < index; ++i) {
      const Event& other = experiment_.timeline[i];
      if (!origins_.events[i].sound || event.action.index() != other.action.index()) continue;
      if (!overlap(event, other)) continue;
      const auto node = common_target(event, other);
      if (!node) continue;
      std::string what;
      if (std::holds_alternative<Slow>(event.action)) {
        what = "slows '" + *node + "'";
      } else if (std::holds_alternative<Pause>(event.action)) {
        what = "pauses '" + *node + "'";
      } else if (const auto* change = std::get_if<LinkChange>(&event.action)) {
        const auto property = common_property(*change, std::get<LinkChange>(other.action));
        if (!property) continue;
        what = "sets the " + *property + " of '" + *node + "'";
      } else {
        continue;
      }
      const std::string until =
          other.lasts ? " to " + seconds(other.at + *other.lasts) : " to the end";
      diagnostics_.error(*origins_.events[index].map, "event '" + event.name + "' " + what +
                                                          " while '" + other.name + "' does (" +
                                                          seconds(other.at) + until +
                                                          "); let one end before the other begins");
      return;
    }
  }

  /// Kill and restart take turns on each node.
  void check_lives() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < experiment_.timeline.size(); ++i)
      if (origins_.events[i].sound) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return experiment_.timeline[a].at < experiment_.timeline[b].at;
    });
    std::map<std::string, const Event*> killed;
    for (const std::size_t i : order) {
      const Event& event = experiment_.timeline[i];
      for (const std::string& node : event.nodes) {
        const auto dead = killed.find(node);
        const bool restart = std::holds_alternative<Restart>(event.action);
        const Node& at = find_or(*origins_.events[i].action, "node");
        if (restart && dead == killed.end()) {
          diagnostics_.error(at, "event '" + event.name + "' restarts '" + node +
                                     "', which nothing has killed by " + seconds(event.at) +
                                     "; add a kill before it");
        } else if (restart && dead->second->at == event.at) {
          diagnostics_.error(at, "event '" + event.name + "' restarts '" + node +
                                     "' at the instant at which '" + dead->second->name +
                                     "' kills it; let some time pass");
        } else if (!restart && dead != killed.end()) {
          diagnostics_.error(at, "event '" + event.name + "' finds '" + node + "' dead: '" +
                                     dead->second->name + "' killed it at " +
                                     seconds(dead->second->at) + "; add a restart between them");
        }
        if (restart) killed.erase(node);
        if (std::holds_alternative<Kill>(event.action)) killed.emplace(node, &event);
      }
    }
  }

  void check_runs() {
    std::map<std::string, const Node*> seen;
    for (std::size_t i = 0; i < experiment_.runs.size(); ++i) {
      const Run& run = experiment_.runs[i];
      const Origins::RunOrigin& origin = origins_.runs[i];
      if (!run.name.empty()) {
        const auto [first, fresh] = seen.emplace(run.name, origin.map);
        if (!fresh)
          diagnostics_.error(find_or(*origin.map, "name"),
                             "run '" + run.name + "' is here twice, first at line " +
                                 std::to_string(first->second->place.line) +
                                 "; give each its own name" +
                                 (first->second == origin.map ? " or seed" : ""));
      }
      const auto strategy = strategies_.find(run.strategy);
      if (!origin.sound || strategy == strategies_.end()) continue;
      check_stop(run, strategy->second, *origin.map);
      check_placement(run, strategy->second, *origin.map);
      check_node_options(run, strategy->second, *origin.map);
    }
  }

  void check_stop(const Run& run, const StrategyInfo& info, const Node& map) {
    const Node& stop = find_or(map, "stop");
    if (info.progress == Progress::evaluations && (run.stop.steps || run.stop.epochs)) {
      const char* key = run.stop.steps ? "steps" : "epochs";
      diagnostics_.error(find_or(stop, key), run.strategy + " counts evaluations, not " + key +
                                                 "; write evaluations: N");
    }
    if (info.progress == Progress::steps && run.stop.evaluations)
      diagnostics_.error(
          find_or(stop, "evaluations"),
          run.strategy + " counts steps, not evaluations; write steps: N or epochs: N");
  }

  void check_placement(const Run& run, const StrategyInfo& info, const Node& map) {
    const Node& at = find_or(map, "placement");
    if (!info.staged) {
      if (!run.placement.empty())
        diagnostics_.error(at, run.strategy +
                                   " holds the whole model on every node; remove "
                                   "`placement`");
      return;
    }
    if (!origins_.workload_sound || !origins_.nodes_sound) return;
    const Workload& workload = experiment_.workload;
    const auto nodes = static_cast<std::int64_t>(node_names_.size());
    const std::int64_t layers = workload.layer_count();
    if (layers == 0) return;
    if (run.placement.empty()) {
      if (nodes > layers)
        diagnostics_.error(find_or(map, "strategy"),
                           run.strategy + " needs a layer for each node, but there are " +
                               std::to_string(nodes) + " nodes and the " + name_of(workload.model) +
                               " has " + std::to_string(layers) +
                               " layers; take fewer nodes or more layers, or write a placement");
      return;
    }
    std::int64_t placed = 0;
    std::set<std::string> used;
    for (std::size_t i = 0; i < run.placement.size(); ++i) {
      const Stage& stage = run.placement[i];
      placed += stage.layers;
      const Node& name = find_or(at.items[i], "node");
      need_nodes({stage.node}, name);
      if (!used.insert(stage.node).second)
        diagnostics_.error(name, "node '" + stage.node +
                                     "' has two stages; give each node one, with layers that "
                                     "follow one another");
    }
    if (placed != layers)
      diagnostics_.error(at, "the stages hold " + std::to_string(placed) + " layers, but the " +
                                 name_of(workload.model) + " has " + std::to_string(layers) +
                                 "; write stages that add up to that");
  }

  void check_node_options(const Run& run, const StrategyInfo& info, const Node& map) {
    const Node* options = map.find("options");
    for (const std::string& name : info.node_options) {
      const Node* value = options ? options->find(name) : nullptr;
      // Empty is the strategy's own choice, as a file that was written by us says.
      if (!value || value->text.empty() || !origins_.nodes_sound) continue;
      const auto index = read_integer(*value);
      if (!index)
        need_nodes({value->text}, *value);
      else if (*index < 0 || *index >= static_cast<std::int64_t>(node_names_.size()))
        diagnostics_.error(*value, "there is no node " + value->text + " for " + run.strategy +
                                       "; write a name, or an index below " +
                                       std::to_string(node_names_.size()));
    }
  }

  const Experiment& experiment_;
  const Origins& origins_;
  const StrategyCatalog& strategies_;
  Diagnostics& diagnostics_;
  std::vector<std::string> node_names_;  ///< in the order of the file
  std::set<std::string> node_set_;
  std::set<const Node*> reported_;  ///< a default that is wrong is wrong once, not for each node
};

}  // namespace

void check_experiment(const Read& read, const StrategyCatalog& strategies,
                      Diagnostics& diagnostics) {
  Checker(read, strategies, diagnostics).check();
}

}  // namespace orrery::config
