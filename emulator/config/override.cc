#include <charconv>

#include "emulator/config/document.hh"

namespace orrery::config {
namespace {

/// A part of the path, and where it starts in the item (from 0).
struct Step {
  std::string text;
  std::size_t start;
};

std::vector<Step> split(const std::string& path) {
  std::vector<Step> steps;
  std::size_t start = 0;
  for (;;) {
    const std::size_t dot = path.find('.', start);
    steps.push_back({path.substr(start, dot - start), start});
    if (dot == std::string::npos) return steps;
    start = dot + 1;
  }
}

void move_places(Node& node, const Source& source, std::size_t shift) {
  const auto move = [&](Place& place) { place = {&source, 1, place.column + shift}; };
  move(node.place);
  for (Node& item : node.items) move_places(item, source, shift);
  for (Entry& entry : node.entries) {
    move(entry.place);
    move_places(entry.value, source, shift);
  }
}

/// The item with that index or `name`; nullptr if none.
Node* find_item(Node& list, const std::string& step) {
  std::size_t index = 0;
  const auto [end, failure] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (failure == std::errc{} && end == step.data() + step.size())
    return index < list.items.size() ? &list.items[index] : nullptr;
  for (Node& item : list.items) {
    const Node* name = item.find("name");
    if (name && name->is_scalar() && name->text == step) return &item;
  }
  return nullptr;
}

std::string names_of_items(const Node& list) {
  std::string names;
  for (const Node& item : list.items) {
    const Node* name = item.find("name");
    if (!name || !name->is_scalar()) continue;
    names += (names.empty() ? "" : ", ") + name->text;
  }
  const std::string count = std::to_string(list.items.size());
  if (list.items.empty()) return "the list is empty";
  return "use an index below " + count + (names.empty() ? "" : ", or one of " + names);
}

}  // namespace

void apply_override(Node& root, const std::string& assignment, Diagnostics& diagnostics) {
  const Source& source = diagnostics.add_source({"--set", assignment, false});
  const auto at = [&](std::size_t offset) { return Place{&source, 1, offset + 1}; };
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0 || assignment.find('\n') != std::string::npos) {
    diagnostics.error(at(0), "'" + assignment.substr(0, assignment.find('\n')) +
                                 "' is not KEY=VALUE; write e.g. --set seed=2");
    return;
  }
  const std::vector<Step> steps = split(assignment.substr(0, equals));
  for (const Step& step : steps) {
    if (!step.text.empty()) continue;
    diagnostics.error(at(step.start), "a part of the path is empty; write e.g. a.b.c=VALUE");
    return;
  }

  Diagnostics own;
  Node value = parse_document("--set", assignment.substr(equals + 1), own);
  if (!own.ok()) {
    diagnostics.error(at(equals + 1),
                      "the value is not YAML; quote it where it holds any of "
                      "{ } [ ] , & * # ? | < > = ! % @ : or `");
    return;
  }
  move_places(value, source, equals + 1);

  Node* here = &root;
  for (const Step& step : steps) {
    if (here->is_null()) {
      here->kind = Node::Kind::map;
      here->place = at(step.start);
    }
    if (here->is_map()) {
      Node* next = const_cast<Node*>(here->find(step.text));
      if (!next) {
        here->entries.push_back({step.text, at(step.start), {}});
        next = &here->entries.back().value;
        next->place = at(equals + 1);
      }
      here = next;
    } else if (here->is_list()) {
      Node* next = find_item(*here, step.text);
      if (!next) {
        diagnostics.error(at(step.start),
                          "the list has no item '" + step.text + "'; " + names_of_items(*here));
        return;
      }
      here = next;
    } else {
      diagnostics.error(at(step.start), "the path goes on after " + describe(*here) +
                                            ", which is a single value; end it there");
      return;
    }
  }
  *here = std::move(value);
}

}  // namespace orrery::config
