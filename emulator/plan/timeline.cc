#include "emulator/plan/timeline.hh"

#include <algorithm>
#include <map>
#include <set>

#include "emulator/config/network.hh"

namespace orrery::emulator {
namespace {

using config::Event;

std::optional<Instant> end_of(const Event& event) {
  if (!event.lasts) return std::nullopt;
  return event.at + *event.lasts;
}

bool in_force(const Event& event, Instant t) {
  const auto end = end_of(event);
  return event.at <= t && (!end || t < *end);
}

// A direction at an instant: the base link with the patches in force, in the file's order.
netshape::LinkSpec link_at(const config::Experiment& experiment, const netshape::Topology& topology,
                           const config::Ends& ends, Instant t) {
  config::Link link = config::link_between(experiment.cluster.network, ends);
  for (const Event& event : experiment.timeline) {
    const auto* change = std::get_if<config::LinkChange>(&event.action);
    if (!change || !in_force(event, t)) continue;
    const std::vector<config::Ends> all = config::touched(topology, event, *change);
    if (std::find(all.begin(), all.end(), ends) != all.end())
      link = change->at(t - event.at).applied_to(link);
  }
  return config::link_spec(link);
}

std::string describe(const ShapeLinks& shape) {
  std::string text;
  for (const netshape::LinkChange& change : shape.changes)
    text += (text.empty() ? "" : "; ") + change.link + ": " + netshape::to_string(change.spec);
  return text;
}

class Expansion {
 public:
  explicit Expansion(const config::Experiment& experiment)
      : experiment_(experiment), topology_(config::topology_of(experiment.cluster.network)) {}

  std::vector<TimedAction> all() {
    for (const Event& event : experiment_.timeline) {
      for (const std::string& node : event.nodes)
        std::visit([&](const auto& action) { add(event, node, action); }, event.action);
      if (const auto* change = std::get_if<config::LinkChange>(&event.action))
        if (change->between)
          shape(event, change->between->first + " - " + change->between->second, change->direction,
                config::touched(topology_, event, *change));
    }
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
    shape(event, node, change.direction, config::directions_of(topology_, node, change.direction));
  }

  // At the event's beginning and at its end; all of it at once.
  void shape(const Event& event, const std::string& whose, config::Direction direction,
             const std::vector<config::Ends>& links) {
    const auto act = [&](Instant t, bool is_end) {
      ShapeLinks change;
      for (const config::Ends& ends : links)
        change.changes.push_back(
            {netshape::link_name(ends.from, ends.to), link_at(experiment_, topology_, ends, t)});
      const std::string target = change.changes.size() == 1 ? change.changes[0].link
                                 : direction == config::Direction::both
                                     ? whose + " (both directions)"
                                 : direction == config::Direction::up ? whose + " (up)"
                                                                      : whose + " (down)";
      std::string what = describe(change);
      put(t, event, "link", target, std::move(what), is_end, std::move(change));
    };
    const auto& steps = std::get<config::LinkChange>(event.action).steps;
    if (steps.empty()) act(event.at, false);
    for (const config::LinkStep& step : steps) act(event.at + step.at, false);
    if (const auto end = end_of(event)) act(*end, true);
  }

  static std::string factor_text(double factor) {
    std::string text = std::to_string(factor);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " times";
  }

  const config::Experiment& experiment_;
  netshape::Topology topology_;
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

}  // namespace orrery::emulator
