#include "emulator/config/network_file.hh"

#include "emulator/config/experiment_schema.hh"
#include "emulator/config/schema.hh"

namespace orrery::config {
namespace {

TypePtr version() {
  return quantity("`1`", "^1$", [](const std::string& text) {
    if (text != "1")
      throw ValueError("format '" + text + "' is not known to this program; write 1");
  });
}

TypePtr network_file() {
  return object("network file",
                {required("netshape", version(), "The version of this format."),
                 required("nodes", list_of(anything(), "nodes", 1), "Their names."),
                 required("network", anything(), "What connects them."),
                 optional("seed", anything(), "From which every random number comes.", "1"),
                 optional("timeline", list_of(anything(), "events"), "What happens to links.")});
}

Node scalar(const std::string& text, const Place& place) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = text;
  node.place = place;
  return node;
}

Node list(std::vector<Node> items, const Place& place) {
  Node node;
  node.kind = Node::Kind::list;
  node.items = std::move(items);
  node.place = place;
  return node;
}

Node map(std::vector<std::pair<std::string, Node>> entries, const Place& place) {
  Node node;
  node.kind = Node::Kind::map;
  node.place = place;
  for (auto& [key, value] : entries) {
    const Place at = value.place;
    node.entries.push_back({key, at, std::move(value)});
  }
  return node;
}

// The experiment that holds this network, each part where the file has it.
Node experiment_around(const Node& file) {
  const Place& top = file.place;
  std::vector<Node> nodes;
  for (const Node& name : file.find("nodes")->items)
    nodes.push_back(map({{"name", name}, {"device", scalar("ideal", name.place)}}, name.place));
  std::vector<std::pair<std::string, Node>> entries{
      {"orrery", scalar("1", top)},
      {"name", scalar("network", top)},
      {"cluster", map({{"cost", scalar("model", top)},
                       {"nodes", list(std::move(nodes), file.find("nodes")->place)},
                       {"network", *file.find("network")}},
                      top)},
      {"workload", map({{"model", scalar("mlp", top)},
                        {"layers", list({scalar("784", top), scalar("10", top)}, top)}},
                       top)},
      {"runs", list({map({{"name", scalar("none", top)},
                          {"strategy", scalar("sgd_allreduce", top)},
                          {"stop", map({{"steps", scalar("1", top)}}, top)}},
                         top)},
                    top)}};
  for (const char* key : {"seed", "timeline"})
    if (const Node* value = file.find(key)) entries.emplace_back(key, *value);
  return map(std::move(entries), top);
}

void refuse_other_events(const Node& file, Diagnostics& diagnostics) {
  const Node* timeline = file.find("timeline");
  if (!timeline || !timeline->is_list()) return;
  for (const Node& event : timeline->items)
    for (const char* key : {"slow", "pause", "kill", "restart"})
      if (const Entry* found = event.entry(key))
        diagnostics.error(found->value, "a network has links only, and nothing to " +
                                            std::string(key) + "; write a `link` event");
}

Loaded network_from(const Node& root, const StrategyCatalog& strategies, Diagnostics& diagnostics) {
  diagnostics.throw_if_broken();
  network_file()->check(root, diagnostics);
  diagnostics.throw_if_any();
  refuse_other_events(root, diagnostics);
  return load_tree(experiment_around(root), strategies, diagnostics);
}

}  // namespace

Loaded load_network(const std::string& path, const StrategyCatalog& strategies) {
  Diagnostics diagnostics;
  const Node root = read_document(path, diagnostics);
  return root.find("orrery") ? load(path, strategies)
                             : network_from(root, strategies, diagnostics);
}

Loaded load_network_text(const std::string& name, const std::string& text,
                         const StrategyCatalog& strategies) {
  Diagnostics diagnostics;
  const Node root = parse_document(name, text, diagnostics);
  return root.find("orrery") ? load_text(name, text, strategies)
                             : network_from(root, strategies, diagnostics);
}

}  // namespace orrery::config
