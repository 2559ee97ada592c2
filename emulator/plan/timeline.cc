#include "emulator/plan/timeline.hh"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hh"

namespace orrery::emulator {
namespace {

using config::Direction;
using config::Event;

std::optional<Instant> end_of(const Event& event) {
  if (!event.lasts) return std::nullopt;
  return event.at + *event.lasts;
}

bool in_force(const Event& event, Instant t) {
  const auto end = end_of(event);
  return event.at <= t && (!end || t < *end);
}

const config::Access& access_of(const config::Network& network, const std::string& node) {
  for (const config::Access& access : network.access)
    if (access.node == node) return access;
  throw Error("node '" + node + "' has no link");
}

// A direction at an instant: the base link with the patches in force, in the file's order.
netshape::LinkSpec link_at(const config::Experiment& experiment, const std::string& node, bool up,
                           Instant t) {
  const config::Access& access = access_of(experiment.cluster.network, node);
  config::Link link = up ? access.up : access.down;
  for (const Event& event : experiment.timeline) {
    const auto* change = std::get_if<config::LinkChange>(&event.action);
    if (!change || !in_force(event, t)) continue;
    if (std::find(event.nodes.begin(), event.nodes.end(), node) == event.nodes.end()) continue;
    if (change->direction == Direction::both || (change->direction == Direction::up) == up)
      link = change->set.applied_to(link);
  }
  return link_spec(link);
}

ShapeLinks shape_at(const config::Experiment& experiment, const std::string& node,
                    Direction direction, Instant t) {
  ShapeLinks shape;
  const netshape::Topology topology = topology_of(experiment.cluster.network);
  const std::string& switch_name = netshape::switch_of(topology, node);
  if (direction != Direction::down)
    shape.changes.push_back(
        {netshape::link_name(node, switch_name), link_at(experiment, node, true, t)});
  if (direction != Direction::up)
    shape.changes.push_back(
        {netshape::link_name(switch_name, node), link_at(experiment, node, false, t)});
  return shape;
}

std::string describe(const ShapeLinks& shape) {
  std::string text;
  for (const netshape::LinkChange& change : shape.changes)
    text += (text.empty() ? "" : "; ") + change.link + ": " + netshape::to_string(change.spec);
  return text;
}

class Expansion {
 public:
  explicit Expansion(const config::Experiment& experiment) : experiment_(experiment) {}

  std::vector<TimedAction> all() {
    for (const Event& event : experiment_.timeline)
      for (const std::string& node : event.nodes)
        std::visit([&](const auto& action) { add(event, node, action); }, event.action);
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const TimedAction& a, const TimedAction& b) {
                       if (a.at != b.at) return a.at < b.at;
                       return a.is_end && !b.is_end;
                     });
    return std::move(actions_);
  }

 private:
  void put(Instant at, const Event& event, const char* type, const std::string& target,
           std::string what, bool is_end, Action action) {
    actions_.push_back({at, event.name, type, target, std::move(what), is_end, std::move(action)});
  }

  void add(const Event& event, const std::string& node, const config::Slow& slow) {
    put(event.at, event, "slow", node,
        node + " computes " + factor_text(slow.factor) + " as slowly", false, SpeedChange{});
    if (const auto end = end_of(event))
      put(*end, event, "slow", node, node + " is as fast as before", true, SpeedChange{});
  }
  void add(const Event& event, const std::string& node, const config::Pause&) {
    put(event.at, event, "pause", node, node + " stands still", false, StopProcess{});
    if (const auto end = end_of(event))
      put(*end, event, "pause", node, node + " goes on", true, ContinueProcess{});
  }
  void add(const Event& event, const std::string& node, const config::Kill&) {
    put(event.at, event, "kill", node, node + " is killed", false, KillProcess{});
  }
  void add(const Event& event, const std::string& node, const config::Restart&) {
    put(event.at, event, "restart", node, node + " is started again", false, RestartProcess{});
  }
  void add(const Event& event, const std::string& node, const config::LinkChange& change) {
    const auto shape = [&](Instant t, bool is_end) {
      ShapeLinks links = shape_at(experiment_, node, change.direction, t);
      const std::string target =
          links.changes.size() == 1 ? links.changes[0].link : node + " (both directions)";
      std::string what = describe(links);
      put(t, event, "link", target, std::move(what), is_end, std::move(links));
    };
    shape(event.at, false);
    if (const auto end = end_of(event)) shape(*end, true);
  }

  static std::string factor_text(double factor) {
    std::string text = std::to_string(factor);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " times";
  }

  const config::Experiment& experiment_;
  std::vector<TimedAction> actions_;
};

}  // namespace

std::vector<TimedAction> expand_timeline(const config::Experiment& experiment) {
  return Expansion(experiment).all();
}

std::vector<SpeedSchedule::Step> speed_schedule(const config::Experiment& experiment,
                                                const std::string& node) {
  std::vector<const Event*> events;
  std::set<Instant> borders;
  for (const Event& event : experiment.timeline) {
    const bool matters = std::holds_alternative<config::Slow>(event.action) ||
                         std::holds_alternative<config::Pause>(event.action);
    if (!matters || std::find(event.nodes.begin(), event.nodes.end(), node) == event.nodes.end())
      continue;
    events.push_back(&event);
    borders.insert(event.at);
    if (const auto end = end_of(event)) borders.insert(*end);
  }
  std::vector<SpeedSchedule::Step> steps;
  for (const Instant t : borders) {
    double factor = 1;
    for (const Event* event : events) {
      if (!in_force(*event, t)) continue;
      const auto* slow = std::get_if<config::Slow>(&event->action);
      factor = slow ? factor / slow->factor : 0;
    }
    steps.push_back({t, factor});
  }
  return steps;
}

netshape::LinkSpec link_spec(const config::Link& link) {
  netshape::LinkSpec spec;
  spec.delay = link.delay;
  spec.jitter = link.jitter;
  spec.distribution = link.distribution;
  spec.keep_order = link.keep_order;
  spec.rate = link.rate;
  if (link.loss_model)
    spec.burst_loss = link.loss_model;
  else if (link.loss_burst > 1 && link.loss.value > 0)
    spec.burst_loss = netshape::gilbert(link.loss, link.loss_burst);
  else
    spec.loss = link.loss;
  spec.duplicate = link.duplicate;
  spec.corrupt = link.corrupt;
  spec.reorder = link.reorder;
  spec.layer = link.layer;
  if (!link.rate) return spec;  // nothing queues before a line that takes no time
  if (const auto* time = std::get_if<Duration>(&link.queue)) spec.queue = *time;
  if (const auto* bytes = std::get_if<Bytes>(&link.queue)) spec.queue = *bytes;
  if (const auto* bdp = std::get_if<config::BdpMultiple>(&link.queue))
    spec.queue = netshape::BdpMultiple{bdp->factor};
  return spec;
}

netshape::Topology topology_of(const config::Network& network) {
  std::vector<netshape::StarNode> nodes;
  for (const config::Access& access : network.access)
    nodes.push_back({access.node, link_spec(access.up), link_spec(access.down)});
  return netshape::make_shape(network.topology, std::move(nodes), link_spec(network.trunk),
                              network.arity);
}

}  // namespace orrery::emulator
