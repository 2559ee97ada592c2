// A YAML text as a tree in which every node knows where it was written.
//
// Made from yaml-cpp's events, not from its nodes: those keep the first of two equal keys in
// silence and have no place for what is missing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/config/diagnostics.hh"

namespace orrery::config {

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  Place place;
  std::string text;  ///< of a scalar, unquoted
  bool quoted = false;
  bool incomplete = false;     ///< of a map: an entry was refused, and is not here
  std::vector<Node> items;     ///< of a list
  std::vector<Entry> entries;  ///< of a map, in the order of the file, each key once

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
  /// The value of a map's key; nullptr where there is none, or this is no map.
  const Node* find(std::string_view key) const;
  const Entry* entry(std::string_view key) const;
};

struct Entry {
  std::string key;
  Place place;  ///< of the key
  Node value;
};

/// What a node is, for messages: "a list", "a map", "nothing", "'text'".
std::string describe(const Node& node);

/// Nodes that no file holds, as if written at `place`.
Node make_scalar(std::string text, const Place& place);
Node make_list(std::vector<Node> items, const Place& place);
Node make_map(std::vector<std::pair<std::string, Node>> entries, const Place& place);

/// Bounds that no experiment meets, so that a malicious or damaged file ends in one line.
struct DocumentLimits {
  std::size_t bytes = 16u << 20;
  std::size_t nodes = 500'000;  ///< aliases counted as what they stand for
  std::size_t depth = 50;
};

/// Parses one YAML document. Anchors and aliases work; the merge key `<<`, tags and a second
/// document are refused, duplicate keys reported. Places point into `diagnostics`, which must
/// outlive the tree. Where the text cannot be read to its end, the tree is empty and `diagnostics`
/// marked as broken.
Node parse_document(std::string name, std::string text, Diagnostics& diagnostics,
                    const DocumentLimits& limits = {});

/// Reads the file first; a missing one, a directory and the like are errors without a place.
Node read_document(const std::string& path, Diagnostics& diagnostics,
                   const DocumentLimits& limits = {});

/// A file that a document names, as a source of `diagnostics`, which must outlive what is made of
/// it. Nullptr, and an error at `named_by`, if it cannot be read.
const Source* read_source(const std::string& path, const Node& named_by, Diagnostics& diagnostics);

/// Applies `--set a.b.c=VALUE`. A path goes through maps by key and through lists by index or by
/// the `name` of an item: `runs.nd_cao_sync.options.step=0.1`. Keys that do not exist are made (the
/// check of the experiment will refuse unknown ones); VALUE is YAML.
void apply_override(Node& root, const std::string& assignment, Diagnostics& diagnostics);

}  // namespace orrery::config
