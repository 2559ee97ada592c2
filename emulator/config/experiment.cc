#include "emulator/config/experiment.hh"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "base/error.hh"
#include "emulator/config/schema.hh"

namespace orrery::config {
namespace {

constexpr std::size_t most_names = 4096;
constexpr const char* example = "board[0-3] or board[0,2,5-7]";

template <typename Items>
std::string names_of_all(const Items& items) {
  std::string names;
  for (const auto& item : items) names += (names.empty() ? "" : ", ") + item.name;
  return names.empty() ? "there are none" : "there are " + names;
}

/// A number of a range, with the digits that it is written in.
struct Index {
  std::uint64_t value = 0;
  std::size_t digits = 0;
};

Index parse_index(const std::string& text, const std::string& range) {
  Index index{0, text.size()};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), index.value);
  if (failure != std::errc{} || end != text.data() + text.size() || text.size() > 9)
    throw ValueError("'" + range + "' is no range of names; write e.g. " + example);
  return index;
}

void add_indices(std::vector<std::string>& names, const std::string& range,
                 const std::string& before, const std::string& part, const std::string& after) {
  const std::size_t dash = part.find('-');
  const Index first = parse_index(part.substr(0, dash), range);
  const Index last = dash == std::string::npos ? first : parse_index(part.substr(dash + 1), range);
  if (last.value < first.value)
    throw ValueError("'" + range + "' counts down; write the smaller number first, as in " +
                     example);
  if (last.value - first.value + names.size() >= most_names)
    throw ValueError("'" + range + "' has more than " + std::to_string(most_names) +
                     " names; write a shorter range");
  for (std::uint64_t i = first.value; i <= last.value; ++i) {
    std::string number = std::to_string(i);
    // `[08-10]`: as many digits as the first has.
    if (number.size() < first.digits) number.insert(0, first.digits - number.size(), '0');
    names.push_back(before + number + after);
  }
}

}  // namespace

std::vector<std::string> expand_names(const std::string& range) {
  const std::size_t open = range.find('[');
  const std::size_t close = range.find(']');
  std::vector<std::string> names;
  if (open == std::string::npos && close == std::string::npos) {
    names.push_back(range);
  } else if (open == std::string::npos || close == std::string::npos || close < open) {
    throw ValueError("'" + range + "' has a bracket without its partner; write e.g. " + example);
  } else {
    const std::string before = range.substr(0, open);
    const std::string after = range.substr(close + 1);
    const std::string inside = range.substr(open + 1, close - open - 1);
    for (std::size_t start = 0;;) {
      const std::size_t comma = inside.find(',', start);
      add_indices(names, range, before, inside.substr(start, comma - start), after);
      if (comma == std::string::npos) break;
      start = comma + 1;
    }
  }
  for (const std::string& name : names)
    if (!is_name(name))
      throw ValueError("'" + range + "' is no name of a node; " + name_advice() +
                       ", or a range as in " + example);
  return names;
}

Link LinkPatch::applied_to(Link link) const {
  if (delay) link.delay = *delay;
  if (jitter) link.jitter = *jitter;
  if (distribution) link.distribution = *distribution;
  if (rate) link.rate = *rate;
  if (keep_order) link.keep_order = *keep_order;
  if (loss || loss_burst) link.loss_model.reset();
  if (loss) link.loss = *loss;
  if (loss_burst) link.loss_burst = *loss_burst;
  if (loss_model) {
    link.loss_model = loss_model;
    link.loss = {};
    link.loss_burst = 1;
  }
  if (duplicate) link.duplicate = *duplicate;
  if (corrupt) link.corrupt = *corrupt;
  if (reorder) link.reorder = *reorder;
  if (queue) link.queue = *queue;
  if (layer) link.layer = *layer;
  return link;
}

const Device& Cluster::device_of(const ClusterNode& node) const {
  for (const Device& device : devices)
    if (device.name == node.device) return device;
  throw std::logic_error("node '" + node.name + "' has no device");
}

std::int64_t Workload::layer_count() const {
  // LeNet-5: two convolutions and three fully connected layers.
  if (model == ModelKind::lenet5) return 5;
  return layers.empty() ? 0 : static_cast<std::int64_t>(layers.size()) - 1;
}

bool operator==(const Run& a, const Run& b) {
  return a.name == b.name && a.group == b.group && a.strategy == b.strategy &&
         a.options.values() == b.options.values() && a.stop == b.stop && a.seed == b.seed &&
         a.evaluate_every == b.evaluate_every && a.placement == b.placement;
}

Experiment Experiment::select(const std::string& run) const {
  Experiment selected = *this;
  std::erase_if(selected.runs, [&](const Run& candidate) {
    return candidate.name != run && candidate.group != run;
  });
  if (selected.runs.empty())
    throw ValueError("no run is named '" + run + "'; " + names_of_all(runs));
  return selected;
}

Experiment Experiment::without(const std::string& event) const {
  Experiment rest = *this;
  if (std::erase_if(rest.timeline, [&](const Event& e) { return e.name == event; }) == 0)
    throw ValueError("no event of the timeline is named '" + event + "'; " +
                     names_of_all(timeline));
  return rest;
}

LinkPatch LinkChange::at(Duration since) const {
  if (steps.empty()) return set;
  LinkPatch patch;
  for (const LinkStep& step : steps)
    if (step.at <= since) patch = step.set;
  return patch;
}

}  // namespace orrery::config
