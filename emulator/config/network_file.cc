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

// The experiment that holds this network, each part where the file has it.
Node experiment_around(const Node& file) {
  const Place& top = file.place;
  std::vector<Node> nodes;
  for (const Node& name : file.find("nodes")->items)
    nodes.push_back(
        make_map({{"name", name}, {"device", make_scalar("ideal", name.place)}}, name.place));
  std::vector<std::pair<std::string, Node>> entries{
      {"orrery", make_scalar("1", top)},
      {"name", make_scalar("network", top)},
      {"cluster", make_map({{"cost", make_scalar("model", top)},
                            {"nodes", make_list(std::move(nodes), file.find("nodes")->place)},
                            {"network", *file.find("network")}},
                           top)},
      {"workload",
       make_map({{"model", make_scalar("mlp", top)},
                 {"layers", make_list({make_scalar("784", top), make_scalar("10", top)}, top)}},
                top)},
      {"runs", make_list({make_map({{"name", make_scalar("none", top)},
                                    {"strategy", make_scalar("sgd_allreduce", top)},
                                    {"stop", make_map({{"steps", make_scalar("1", top)}}, top)}},
                                   top)},
                         top)}};
  for (const char* key : {"seed", "timeline"})
    if (const Node* value = file.find(key)) entries.emplace_back(key, *value);
  return make_map(std::move(entries), top);
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
  return root.find("orrery") ? load(path, strategies) : network_from(root, strategies, diagnostics);
}

Loaded load_network_text(const std::string& name, const std::string& text,
                         const StrategyCatalog& strategies) {
  Diagnostics diagnostics;
  const Node root = parse_document(name, text, diagnostics);
  return root.find("orrery") ? load_text(name, text, strategies)
                             : network_from(root, strategies, diagnostics);
}

}  // namespace orrery::config
