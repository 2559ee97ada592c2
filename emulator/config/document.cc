#include "emulator/config/document.hh"

#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "base/fd.hh"

namespace orrery::config {
namespace {

/// Ends the parse; the error has been reported.
struct Stop {};

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// yaml-cpp counts lines, columns and bytes from 0.
Place place_of(const Source& source, const YAML::Mark& mark) {
  if (mark.is_null()) return {&source, 1, 1};
  const std::size_t line = static_cast<std::size_t>(mark.line) + 1;
  const std::string text = source.line(line);
  std::size_t column = 1;
  for (std::size_t i = 0; i < text.size() && i < static_cast<std::size_t>(mark.column); ++i)
    if (i + 1 >= text.size() || starts_character(text[i + 1])) ++column;
  return {&source, line, column};
}

/// yaml-cpp places a value that is not there at what comes next; we, at the last character before
/// it.
Place end_before(const Source& source, Place at) {
  std::string before = source.line(at.line);
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < before.size(); ++bytes)
    if (starts_character(before[bytes]) && ++characters == at.column) break;
  before.resize(bytes);
  for (std::size_t line = at.line; line > 0; --line) {
    std::string text = line == at.line ? before : source.line(line);
    const std::size_t comment = text.starts_with('#') ? 0 : text.find(" #");
    text.resize(std::min(text.size(), comment));
    const std::size_t last = text.find_last_not_of(" \t");
    if (last == std::string::npos) continue;
    text.resize(last + 1);
    const auto column = std::count_if(text.begin(), text.end(), starts_character);
    return {&source, line, static_cast<std::size_t>(column)};
  }
  return at;
}

/// The number of nodes in a tree.
std::size_t size_of(const Node& node) {
  std::size_t size = 1;
  for (const Node& item : node.items) size += size_of(item);
  for (const Entry& entry : node.entries) size += size_of(entry.value);
  return size;
}

std::size_t depth_of(const Node& node) {
  std::size_t deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depth_of(item));
  for (const Entry& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
  return deepest + 1;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, Diagnostics& diagnostics, const DocumentLimits& limits)
      : source_(source), diagnostics_(diagnostics), limits_(limits) {}

  /// What was read; empty if the text broke off.
  Node take() { return open_.empty() ? std::move(root_) : Node{}; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ < 2) return;
    diagnostics_.error(place_of(source_, mark),
                       "a second document starts here; write one experiment a file");
    throw Stop{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.place = end_before(source_, place_of(source_, mark));
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      diagnostics_.error(place_of(source_, mark),
                         "an alias stands inside the value that it stands for; name a value that "
                         "is complete before it");
      throw Stop{};
    }
    count(size_of(found->second), found->second.place);
    if (open_.size() + depth_of(found->second) > limits_.depth) too_deep(place_of(source_, mark));
    place(Node(found->second), place_of(source_, mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node;
    node.kind = Node::Kind::scalar;
    node.place = place_of(source_, mark);
    node.text = value;
    node.quoted = tag == "!";
    check_tag(node.place, tag);
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::optional<Entry> key;                  ///< of a map: read, and waiting for its value
    bool drop = false;                         ///< the value belongs to a key that was refused
    std::map<std::string, std::size_t> lines;  ///< of the keys so far
  };

  void check_tag(Place at, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    diagnostics_.error(at, "the tag '" + tag + "' has no meaning here; leave it out");
  }

  void count(std::size_t nodes, Place at) {
    nodes_ += nodes;
    if (nodes_ <= limits_.nodes) return;
    diagnostics_.error(at, "the file has more than " + std::to_string(limits_.nodes) +
                               " values, aliases counted in full; no experiment needs so many");
    throw Stop{};
  }

  [[noreturn]] void too_deep(Place at) {
    diagnostics_.error(at, "values are nested deeper than " + std::to_string(limits_.depth) +
                               " levels; no part of an experiment is");
    throw Stop{};
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    Node node;
    node.kind = kind;
    node.place = place_of(source_, mark);
    check_tag(node.place, tag);
    if (open_.size() >= limits_.depth) too_deep(node.place);
    count(1, node.place);
    open_.push_back({std::move(node), anchor, {}, false, {}});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    const Place at = closed.node.place;
    if (closed.anchor != YAML::NullAnchor) anchors_[closed.anchor] = closed.node;
    place(std::move(closed.node), at);
  }

  void add(Node node, YAML::anchor_t anchor) {
    count(1, node.place);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    const Place at = node.place;
    place(std::move(node), at);
  }

  /// Puts a complete node where it belongs: `at` is where it, or its alias, is written.
  void place(Node node, Place at) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      take_key(parent, node, at);
    } else {
      if (!parent.drop) {
        parent.key->value = std::move(node);
        parent.node.entries.push_back(std::move(*parent.key));
      }
      parent.key.reset();
    }
  }

  void take_key(Open& map, const Node& key, Place at) {
    map.key = Entry{key.text, at, {}};
    map.drop = true;
    if (!key.is_scalar()) {
      diagnostics_.error(at, "a key is " + describe(key) + "; write a word");
    } else if (key.text == "<<" && !key.quoted) {
      diagnostics_.error(at,
                         "'<<' (merge) is not supported; write the keys out, or use an alias for a "
                         "whole value");
    } else if (const auto [first, fresh] = map.lines.emplace(key.text, at.line); !fresh) {
      diagnostics_.error(at, "key '" + key.text + "' is here twice, first at line " +
                                 std::to_string(first->second) + "; keep one");
    } else {
      map.drop = false;
    }
    if (map.drop) map.node.incomplete = true;
  }

  const Source& source_;
  Diagnostics& diagnostics_;
  const DocumentLimits& limits_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
  std::size_t documents_ = 0;
};

/// Without a byte-order mark, lines ended by '\n' alone.
std::string normalised(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      if (i + 1 >= text.size() || text[i + 1] != '\n') result += '\n';
    } else {
      result += text[i];
    }
  }
  return result;
}

/// The first byte that no UTF-8 text has there (control characters included), if any.
std::optional<std::size_t> first_bad_byte(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t more = 0;
    if (c < 0x80) {
      if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) return i;
    } else if (c >= 0xC2 && c < 0xE0) {
      more = 1;
    } else if (c >= 0xE0 && c < 0xF0) {
      more = 2;
    } else if (c >= 0xF0 && c < 0xF5) {
      more = 3;
    } else {
      return i;
    }
    for (std::size_t k = 1; k <= more; ++k)
      if (i + k >= text.size() || starts_character(text[i + k])) return i;
    i += more + 1;
  }
  return {};
}

std::string hex(unsigned char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[c >> 4], digits[c & 15]};
}

/// A tab in a line's indentation at or just before `line`, which yaml-cpp reports in other words.
std::optional<Place> indenting_tab(const Source& source, std::size_t line) {
  for (std::size_t number = line > 1 ? line - 1 : 1; number <= line; ++number) {
    const std::string text = source.line(number);
    const std::size_t tab = text.find('\t');
    if (tab != std::string::npos && text.find_first_not_of(" \t") > tab)
      return Place{&source, number, tab + 1};
  }
  return {};
}

/// yaml-cpp's message, as "what; what would be right".
std::string syntax_message(const std::string& message) {
  static const std::map<std::string, std::string> advice{
      {YAML::ErrorMsg::END_OF_MAP,
       "this line does not belong to the map above; check its indentation, "
       "that it is `key: value`, and that the quotes above are closed"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW,
       "a map that '{' opened goes on here; close it with '}', and "
       "put ',' between its entries"},
      {YAML::ErrorMsg::END_OF_SEQ,
       "this line does not belong to the list above; check its "
       "indentation and that it starts with '- '"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW,
       "a list that '[' opened goes on here; close it with ']', and "
       "put ',' between its items"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR,
       "this alias has no anchor above it; define it with '&NAME' "
       "first"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "a quoted text never ends; close its quote"},
      {YAML::ErrorMsg::MAP_VALUE, "a ':' is not expected here; quote the text if it belongs to it"},
      {YAML::ErrorMsg::MAP_KEY, "a key is not expected here; check the indentation"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a '- ' is not expected here; check the indentation"},
      {YAML::ErrorMsg::FLOW_END, "a ']' or '}' closes nothing; remove it"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "a text cannot start with this character; quote the text"},
      {YAML::ErrorMsg::MULTIPLE_ANCHORS, "two anchors stand before one value; keep one"},
      {YAML::ErrorMsg::MULTIPLE_TAGS, "two tags stand before one value; leave them out"},
  };
  // From yaml-cpp 0.8 on the alias's name follows this one.
  const bool unknown_anchor = message.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR);
  const auto found = advice.find(unknown_anchor ? YAML::ErrorMsg::UNKNOWN_ANCHOR : message);
  if (found != advice.end()) return found->second;
  return message + "; this is not valid YAML, check this line and the one above";
}

std::string too_large_message(const DocumentLimits& limits) {
  return ": the file is larger than " + std::to_string(limits.bytes >> 20) +
         " MiB; no experiment is";
}

/// Why this is no text of an experiment at all, if so.
std::optional<std::string> unreadable(const Source& source, bool too_large, bool utf16,
                                      const DocumentLimits& limits) {
  if (too_large) return too_large_message(limits);
  if (utf16) return ": the file is UTF-16; save it as UTF-8";
  const auto bad = first_bad_byte(source.text);
  if (bad) {
    const auto end = source.text.begin() + static_cast<std::ptrdiff_t>(*bad);
    return ":" + std::to_string(1 + std::count(source.text.begin(), end, '\n')) + ": the byte " +
           hex(static_cast<unsigned char>(source.text[*bad])) +
           " is no text; an experiment is a YAML file in UTF-8";
  }
  return {};
}

/// Why a path is not to be read, if so.
std::optional<std::string> why_not_a_file(const std::string& path, const DocumentLimits& limits) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return ": no such file; give the path of an experiment, or write one with `orrery init`";
  if (S_ISDIR(status.st_mode)) return ": is a directory; give the path of an experiment file";
  if (S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) > limits.bytes)
    return too_large_message(limits);
  return {};
}

}  // namespace

const Entry* Node::entry(std::string_view key) const {
  for (const Entry& candidate : entries)
    if (candidate.key == key) return &candidate;
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* found = entry(key);
  return found ? &found->value : nullptr;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  constexpr std::size_t shown = 60;
  std::string text = node.text.substr(0, node.text.find('\n'));
  if (text.size() > shown) {
    std::size_t end = shown;
    while (end > 0 && !starts_character(text[end])) --end;
    text.resize(end);
  }
  return "'" + text + (text.size() < node.text.size() ? "…'" : "'");
}

Node parse_document(std::string name, std::string text, Diagnostics& diagnostics,
                    const DocumentLimits& limits) {
  const bool too_large = text.size() > limits.bytes;
  const bool utf16 = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  Source named{std::move(name), too_large || utf16 ? "" : normalised(std::move(text))};
  const Source& source = diagnostics.add_source(std::move(named));
  Node root;
  root.place = {&source, 1, 1};
  if (const auto why = unreadable(source, too_large, utf16, limits)) {
    diagnostics.error(source.name + *why);
    diagnostics.mark_broken();
    return root;
  }

  std::istringstream stream(source.text);
  TreeBuilder builder(source, diagnostics, limits);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    diagnostics.mark_broken();
  } catch (const YAML::Exception& failure) {
    diagnostics.mark_broken();
    const Place at = place_of(source, failure.mark);
    const auto tab = indenting_tab(source, at.line);
    if (tab)
      diagnostics.error(*tab, "a tab indents this line; YAML wants spaces");
    else
      diagnostics.error(at, syntax_message(failure.msg));
  }
  root = builder.take();
  if (!root.place.source) root.place = {&source, 1, 1};
  return root;
}

Node make_scalar(std::string text, const Place& place) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.place = place;
  return node;
}

Node make_list(std::vector<Node> items, const Place& place) {
  Node node;
  node.kind = Node::Kind::list;
  node.items = std::move(items);
  node.place = place;
  return node;
}

Node make_map(std::vector<std::pair<std::string, Node>> entries, const Place& place) {
  Node node;
  node.kind = Node::Kind::map;
  node.place = place;
  for (auto& [key, value] : entries) {
    const Place at = value.place;
    node.entries.push_back({key, at, std::move(value)});
  }
  return node;
}

const Source* read_source(const std::string& path, const Node& named_by, Diagnostics& diagnostics) {
  if (const auto why = why_not_a_file(path, {})) {
    diagnostics.error(named_by, path + *why);
    return nullptr;
  }
  try {
    return &diagnostics.add_source({path, read_file(path)});
  } catch (const SystemError& failure) {
    diagnostics.error(named_by, path + ": cannot be read (" + std::string(failure.what()) +
                                    "); check its permissions");
    return nullptr;
  }
}

Node read_document(const std::string& path, Diagnostics& diagnostics,
                   const DocumentLimits& limits) {
  const auto fail = [&](const std::string& why) {
    diagnostics.error(path + why);
    diagnostics.mark_broken();
    return Node{};
  };
  if (const auto why = why_not_a_file(path, limits)) return fail(*why);
  std::string text;
  try {
    text = read_file(path);
  } catch (const SystemError& failure) {
    return fail(": cannot be read (" + std::string(failure.what()) + "); check its permissions");
  }
  return parse_document(path, std::move(text), diagnostics, limits);
}

}  // namespace orrery::config
