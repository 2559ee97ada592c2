#include "emulator/config/gml.hh"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <set>

#include "base/units.hh"

namespace orrery::config {
namespace {

// --- the format: KEY VALUE, where a value is a number, a "text" or a [ list ]

struct Item {
  std::string key;
  Place place;
  std::string text;  ///< of a number or text
  std::vector<Item> items;
  bool is_list = false;

  const Item* find(std::string_view name) const {
    for (const Item& item : items)
      if (item.key == name) return &item;
    return nullptr;
  }
};

class GmlReader {
 public:
  GmlReader(const Source& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  /// None: broken, and reported.
  std::optional<std::vector<Item>> read() {
    std::vector<Item> items;
    if (!read_items(items, 0, {})) return {};
    return items;
  }

 private:
  static constexpr std::size_t deepest = 30;

  bool fail(const Place& at, const std::string& what) {
    diagnostics_.error(at, what);
    return false;
  }
  Place here() const { return {&source_, line_, at_ - line_start_ + 1}; }
  bool ended() const { return at_ >= source_.text.size(); }
  char next() const { return source_.text[at_]; }
  void step() {
    if (next() == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }
  void skip_space() {
    while (!ended() && (std::isspace(static_cast<unsigned char>(next())) || next() == '#')) {
      if (next() == '#')
        while (!ended() && next() != '\n') step();
      else
        step();
    }
  }
  std::string word() {
    std::string text;
    while (!ended() && !std::isspace(static_cast<unsigned char>(next())) && next() != '[' &&
           next() != ']' && next() != '"') {
      text += next();
      step();
    }
    return text;
  }

  bool read_items(std::vector<Item>& items, std::size_t depth, const Place& opened) {
    for (;;) {
      skip_space();
      if (ended()) return depth == 0 || fail(opened, "this list does not end; close it with ']'");
      if (next() == ']') {
        if (depth == 0) return fail(here(), "a ']' that closes nothing; remove it");
        step();
        return true;
      }
      Item item;
      item.place = here();
      item.key = word();
      if (item.key.empty() || !std::isalpha(static_cast<unsigned char>(item.key[0])))
        return fail(item.place, "a key is expected here; write KEY VALUE, as in id 3");
      if (!read_value(item, depth)) return false;
      items.push_back(std::move(item));
    }
  }

  bool read_value(Item& item, std::size_t depth) {
    skip_space();
    const Place at = here();
    if (ended() || next() == ']')
      return fail(item.place,
                  "'" + item.key + "' has no value; write a number, a \"text\" or a [ list ]");
    if (next() == '[') {
      if (depth == deepest) return fail(at, "lists lie too deep in each other");
      step();
      item.is_list = true;
      return read_items(item.items, depth + 1, at);
    }
    if (next() != '"') {
      item.text = word();
      return true;
    }
    step();
    while (!ended() && next() != '"') {
      item.text += next();
      step();
    }
    if (ended()) return fail(at, "this text does not end; close it with '\"'");
    step();
    return true;
  }

  const Source& source_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t line_start_ = 0;
};

// --- what it means

std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    name += good ? c : '_';
  }
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "n" + name;
  return name.substr(0, 63);
}

std::optional<double> number_of(const Item* item) {
  if (!item || item->is_list || item->text.empty()) return {};
  try {
    std::size_t end = 0;
    const double value = std::stod(item->text, &end);
    if (end == item->text.size() && std::isfinite(value)) return value;
  } catch (const std::exception&) {
  }
  return {};
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

// Haversine, on a sphere of the Earth's mean radius.
double kilometres(double latitude_a, double longitude_a, double latitude_b, double longitude_b) {
  constexpr double radius = 6371;
  const auto radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double up = std::sin(radians(latitude_b - latitude_a) / 2);
  const double along = std::sin(radians(longitude_b - longitude_a) / 2);
  const double h =
      up * up + std::cos(radians(latitude_a)) * std::cos(radians(latitude_b)) * along * along;
  return 2 * radius * std::asin(std::sqrt(std::min(1.0, h)));
}

class GmlNetwork {
 public:
  GmlNetwork(const std::vector<std::string>& nodes, Diagnostics& diagnostics)
      : nodes_(nodes.begin(), nodes.end()), diagnostics_(diagnostics) {}

  Node read(const Item& graph) {
    const Item* directed = graph.find("directed");
    directed_ = directed && directed->text == "1";
    for (const Item& item : graph.items)
      if (item.key == "node" && item.is_list) add_vertex(item);
    for (const Item& item : graph.items)
      if (item.key == "edge" && item.is_list) add_edge(item);
    std::vector<Node> switches;
    for (const auto& [id, vertex] : vertices_)
      if (nodes_.count(vertex.name) == 0)
        switches.push_back(make_scalar(vertex.name, vertex.place));
    std::vector<std::pair<std::string, Node>> entries;
    if (!switches.empty()) entries.emplace_back("switches", make_list(switches, graph.place));
    entries.emplace_back("wires", make_list(std::move(wires_), graph.place));
    return make_map(std::move(entries), graph.place);
  }

 private:
  struct Vertex {
    std::string name;
    Place place;
    std::optional<double> latitude;
    std::optional<double> longitude;
  };

  void add_vertex(const Item& item) {
    const Item* id = item.find("id");
    if (!id || id->is_list) {
      diagnostics_.error(item.place, "this node has no id; give it one, as in id 3");
      return;
    }
    const Item* label = item.find("label");
    Vertex vertex{as_name(label && !label->text.empty() ? label->text : id->text), item.place,
                  number_of(item.find("Latitude")), number_of(item.find("Longitude"))};
    // The Zoo has several vertices of one label.
    while (!names_.insert(vertex.name).second) vertex.name = as_name(vertex.name + "-" + id->text);
    if (!vertices_.emplace(id->text, vertex).second)
      diagnostics_.error(id->place, "node " + id->text + " is here twice; give each its own id");
  }

  const Vertex* end_of(const Item& edge, const char* key) {
    const Item* id = edge.find(key);
    const auto found = id ? vertices_.find(id->text) : vertices_.end();
    if (found != vertices_.end()) return &found->second;
    diagnostics_.error(id ? id->place : edge.place,
                       std::string("the edge's ") + key +
                           (id ? " " + id->text + " is no node's id" : " is missing") +
                           "; name the id of a node");
    return nullptr;
  }

  void add_edge(const Item& edge) {
    const Vertex* a = end_of(edge, "source");
    const Vertex* b = end_of(edge, "target");
    if (!a || !b || a->name == b->name) return;  // a loop carries nothing
    // Parallel edges: the first is taken.
    if (!joined_.insert({a->name, b->name}).second) return;
    if (!directed_ && !joined_.insert({b->name, a->name}).second) return;
    std::vector<Node> ends;
    ends.push_back(make_scalar(a->name, edge.place));
    ends.push_back(make_scalar(b->name, edge.place));
    std::vector<std::pair<std::string, Node>> wire;
    wire.emplace_back("between", make_list(std::move(ends), edge.place));
    Node link = link_of(edge, *a, *b);
    if (!link.entries.empty()) wire.emplace_back(directed_ ? "forth" : "both", std::move(link));
    wires_.push_back(make_map(std::move(wire), edge.place));
  }

  static const Item* first_of(const Item& edge, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const Item* found = edge.find(key); found && !found->is_list) return found;
    return nullptr;
  }

  static Node link_of(const Item& edge, const Vertex& a, const Vertex& b) {
    std::vector<std::pair<std::string, Node>> link;
    const auto put = [&](const char* key, const Item& item, std::string text) {
      link.emplace_back(key, make_scalar(std::move(text), item.place));
    };
    if (const Item* delay = first_of(edge, {"latency", "delay"})) {
      put("delay", *delay, without_spaces(delay->text));
    } else if (a.latitude && a.longitude && b.latitude && b.longitude) {
      constexpr double ns_per_kilometre = 5000;
      const double km = kilometres(*a.latitude, *a.longitude, *b.latitude, *b.longitude);
      put("delay", edge, to_string(Duration{std::llround(km * ns_per_kilometre)}));
    }
    if (const Item* jitter = edge.find("jitter"))
      put("jitter", *jitter, without_spaces(jitter->text));
    if (const Item* rate = first_of(edge, {"bandwidth", "rate"})) {
      std::string text = without_spaces(rate->text);
      if (text.ends_with("bit")) text += "/s";
      put("rate", *rate, text);
    } else if (const auto raw = number_of(edge.find("LinkSpeedRaw"));
               raw && *raw >= 1 && *raw < 1e15) {
      put("rate", *edge.find("LinkSpeedRaw"), to_string(BitRate{std::llround(*raw)}));
    }
    if (const Item* loss = first_of(edge, {"packet_loss", "loss"}))
      put("loss", *loss, without_spaces(loss->text));
    return make_map(std::move(link), edge.place);
  }

  std::set<std::string> nodes_;
  Diagnostics& diagnostics_;
  bool directed_ = false;
  std::map<std::string, Vertex> vertices_;  ///< by id
  std::set<std::string> names_;
  std::set<std::pair<std::string, std::string>> joined_;
  std::vector<Node> wires_;
};

}  // namespace

Node network_of_gml(const Source& source, const std::vector<std::string>& nodes,
                    Diagnostics& diagnostics) {
  const Place top{&source, 1, 1};
  const auto items = GmlReader(source, diagnostics).read();
  if (!items) return make_map({}, top);
  for (const Item& item : *items)
    if (item.key == "graph" && item.is_list) return GmlNetwork(nodes, diagnostics).read(item);
  diagnostics.error(top,
                    "there is no graph here; a GML file holds graph [ node [ … ] edge [ … ] ]");
  return make_map({}, top);
}

}  // namespace orrery::config
