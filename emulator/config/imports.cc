#include "emulator/config/imports.hh"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>

#include "emulator/config/csv.hh"
#include "emulator/config/experiment.hh"
#include "emulator/config/gml.hh"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

// A trace of a day, second by second.
constexpr std::size_t most_steps = 100'000;

Node* find(Node* map, std::string_view key) {
  if (!map || !map->is_map()) return nullptr;
  for (Entry& entry : map->entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void remove(Node& map, std::string_view key) {
  std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
}

void put(Node& map, const std::string& key, Node value) {
  const Place at = value.place;
  map.entries.push_back({key, at, std::move(value)});
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.eE+-") == std::string::npos;
}

std::string with_unit(const std::string& text, const std::string& unit) {
  return is_number(text) ? text + unit : text;
}

std::optional<Duration> duration_of(const Node* node) {
  if (!node || !node->is_scalar()) return {};
  try {
    return parse_duration(node->text);
  } catch (const ValueError&) {
    return {};  // the schema's check says what is wrong with it
  }
}

class Importer {
 public:
  Importer(Node& root, std::string folder, Diagnostics& diagnostics)
      : root_(root), folder_(std::move(folder)), diagnostics_(diagnostics) {}

  void resolve() {
    if (Node* network = find(find(&root_, "cluster"), "network")) import_network(*network);
    if (Node* timeline = find(&root_, "timeline"); timeline && timeline->is_list())
      for (Node& event : timeline->items)
        if (Node* link = find(&event, "link")) write_steps(*link);
  }

 private:
  const Source* open(const Node& named) {
    return read_source((fs::path(folder_) / named.text).lexically_normal(), named, diagnostics_);
  }

  std::vector<std::string> node_names() {
    std::vector<std::string> names;
    const Node* nodes = find(find(&root_, "cluster"), "nodes");
    if (!nodes) return names;
    for (const Node& item : nodes->items) {
      const Node* name = item.find("name");
      if (!name || !name->is_scalar()) continue;
      try {
        for (std::string& each : expand_names(name->text)) names.push_back(std::move(each));
      } catch (const ValueError&) {
      }
    }
    return names;
  }

  // --- networks

  void import_network(Node& network) {
    const Node* file = find(&network, "import");
    if (!file || !file->is_scalar()) return;
    for (const char* key : {"topology", "arity", "trunk", "links", "switches", "wires"})
      if (const Entry* other = network.entry(key)) {
        diagnostics_.error(other->place,
                           "'" + std::string(key) + "' stands beside 'import'; write one of them");
        return;
      }
    const std::string extension = fs::path(file->text).extension();
    if (extension != ".gml" && extension != ".csv") {
      diagnostics_.error(*file, "'" + file->text +
                                    "' is not known to hold a network; name a .gml "
                                    "graph or a .csv matrix of delays");
      return;
    }
    const Source* source = open(*file);
    if (!source) return;
    const Node links = extension == ".gml"
                           ? network_of_gml(*source, node_names(), diagnostics_)
                           : network_of_matrix(read_csv(*source, diagnostics_), {source, 1, 1});
    remove(network, "import");
    for (const Entry& entry : links.entries) network.entries.push_back(entry);
  }

  // A row and a column a node: the cell is the delay from the row's to the column's, in
  // milliseconds where it has no unit.
  Node network_of_matrix(const std::vector<std::vector<Cell>>& rows, const Place& top) {
    const std::vector<std::string> nodes = node_names();
    std::map<std::string, std::size_t> columns;
    std::map<std::string, const std::vector<Cell>*> by_name;
    if (!rows.empty())
      for (std::size_t i = 1; i < rows[0].size(); ++i) columns.emplace(rows[0][i].text, i);
    for (std::size_t i = 1; i < rows.size(); ++i) by_name.emplace(rows[i][0].text, &rows[i]);
    for (const std::string& name : nodes)
      if (columns.count(name) == 0 || by_name.count(name) == 0) {
        diagnostics_.error(top, "the matrix has no " +
                                    std::string(columns.count(name) == 0 ? "column" : "row") +
                                    " '" + name + "'; give each node both");
        return make_map({}, top);
      }
    std::vector<Node> wires;
    const auto delay = [&](const std::string& from, const std::string& to) {
      const std::vector<Cell>& row = *by_name.at(from);
      const std::size_t column = columns.at(to);
      if (column >= row.size()) {
        diagnostics_.error(row[0].place, "the row '" + from + "' ends before the column '" + to +
                                             "'; give it a cell for each");
        return make_map({}, row[0].place);
      }
      const Cell& cell = row[column];
      return make_map({{"delay", make_scalar(with_unit(cell.text, "ms"), cell.place)}}, cell.place);
    };
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::size_t j = i + 1; j < nodes.size(); ++j) {
        std::vector<Node> ends{make_scalar(nodes[i], top), make_scalar(nodes[j], top)};
        wires.push_back(make_map({{"between", make_list(std::move(ends), top)},
                                  {"forth", delay(nodes[i], nodes[j])},
                                  {"back", delay(nodes[j], nodes[i])}},
                                 top));
      }
    return make_map({{"wires", make_list(std::move(wires), top)}}, top);
  }

  // --- what happens to links, step by step

  struct Step {
    Duration at;
    Place place;
    std::vector<std::pair<std::string, Node>> set;
  };

  void write_steps(Node& link) {
    const Node* trace = find(&link, "trace");
    const Node* flap = find(&link, "flap");
    if (!trace && !flap) return;
    // The schema's check refuses both, and names what the file says.
    if ((trace && flap) || link.find("set") || link.find("steps")) return;
    const Node& source = trace ? *trace : *flap;
    if (!source.is_map()) return;
    const std::optional<Duration> lasts = duration_of(link.find("for"));
    std::optional<std::vector<Step>> steps =
        trace ? steps_of_trace(source, lasts) : steps_of_flap(source, lasts);
    if (!steps) return;
    if (steps->size() > most_steps) {
      diagnostics_.error(source, "that makes " + std::to_string(steps->size()) +
                                     " changes; write at most " + std::to_string(most_steps) +
                                     ", by a longer bin or period or a shorter `for`");
      return;
    }
    std::vector<Node> items;
    for (Step& step : *steps)
      items.push_back(make_map({{"at", make_scalar(to_string(step.at), step.place)},
                                {"set", make_map(std::move(step.set), step.place)}},
                               step.place));
    const Place at = source.place;
    remove(link, trace ? "trace" : "flap");
    put(link, "steps", make_list(std::move(items), at));
  }

  std::optional<std::vector<Step>> steps_of_flap(const Node& flap, std::optional<Duration> lasts) {
    const auto period = duration_of(flap.find("period"));
    const auto down = duration_of(flap.find("down"));
    if (!period || !down) return {};
    if (!lasts) {
      diagnostics_.error(flap, "a link that flaps needs an end; write `for` beside `flap`");
      return {};
    }
    if (down->ns <= 0 || *down >= *period) {
      diagnostics_.error(flap,
                         "it must be down for a part of the period; write down between 0 and " +
                             to_string(*period));
      return {};
    }
    if (lasts->ns / period->ns > static_cast<std::int64_t>(most_steps)) {
      diagnostics_.error(flap, "that flaps too often; write a longer period or a shorter `for`");
      return {};
    }
    std::vector<Step> steps;
    for (Duration at; at < *lasts; at += *period) {
      steps.push_back({at, flap.place, {{"loss", make_scalar("100%", flap.place)}}});
      if (at + *down < *lasts) steps.push_back({at + *down, flap.place, {}});
    }
    return steps;
  }

  std::optional<std::vector<Step>> steps_of_trace(const Node& trace,
                                                  std::optional<Duration> lasts) {
    const Node* csv = trace.find("csv");
    const Node* mahimahi = trace.find("mahimahi");
    const Node* file = csv ? csv : mahimahi;
    if (!file || !file->is_scalar()) return {};
    const Source* source = open(*file);
    if (!source) return {};
    Duration length;
    std::vector<Step> once = csv ? steps_of_csv(read_csv(*source, diagnostics_), *file, length)
                                 : steps_of_mahimahi(*source, trace, length);
    if (once.empty()) return {};
    const Node* repeat = trace.find("repeat");
    if (!repeat || repeat->text != "true") return once;
    if (!lasts || length.ns <= 0) {
      diagnostics_.error(*repeat, "a trace that repeats needs an end; write `for` beside `trace`");
      return {};
    }
    std::vector<Step> all;
    for (Duration begin; begin < *lasts && all.size() <= most_steps; begin += length)
      for (const Step& step : once)
        if (begin + step.at < *lasts) all.push_back({begin + step.at, step.place, step.set});
    return all;
  }

  // "rate [Mbit/s]" → {"rate", "Mbit/s"}
  static std::pair<std::string, std::string> column_of(const std::string& text) {
    const std::size_t open = text.find('[');
    if (open == std::string::npos) return {text, ""};
    const std::size_t close = text.find(']', open);
    std::string name = text.substr(0, open);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    return {name, text.substr(open + 1, std::min(close, text.size()) - open - 1)};
  }

  std::vector<Step> steps_of_csv(const std::vector<std::vector<Cell>>& rows, const Node& file,
                                 Duration& length) {
    if (rows.size() < 2) {
      diagnostics_.error(file,
                         "the trace has no rows; its first line names the columns, as in "
                         "time [s], rate [Mbit/s], and a row an instant follows");
      return {};
    }
    std::vector<std::pair<std::string, std::string>> columns;
    std::optional<std::size_t> time;
    for (const Cell& cell : rows[0]) {
      columns.push_back(column_of(cell.text));
      const std::string& name = columns.back().first;
      if (name == "time")
        time = columns.size() - 1;
      else if (name != "rate" && name != "delay" && name != "jitter" && name != "loss")
        diagnostics_.error(cell.place, "'" + name +
                                           "' is no column of a trace; write time, rate, "
                                           "delay, jitter or loss, with a unit in brackets");
    }
    if (!time) {
      diagnostics_.error(rows[0][0].place, "no column is called time; add one, as in time [s]");
      return {};
    }
    std::vector<Step> steps;
    std::map<std::string, Node> known;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const std::vector<Cell>& row = rows[i];
      if (row.size() <= *time) {
        diagnostics_.error(row[0].place, "this row has no time; give it a cell for each column");
        continue;
      }
      Duration at;
      try {
        at = parse_duration(with_unit(row[*time].text, columns[*time].second));
      } catch (const ValueError& error) {
        diagnostics_.error(row[*time].place, error.what());
        continue;
      }
      if (!steps.empty() && at <= steps.back().at) {
        diagnostics_.error(row[*time].place, "the times do not ascend; sort the rows");
        continue;
      }
      for (std::size_t k = 0; k < row.size() && k < columns.size(); ++k)
        if (k != *time && !row[k].text.empty())
          known[columns[k].first] =
              make_scalar(with_unit(row[k].text, columns[k].second), row[k].place);
      Step step{at, row[*time].place, {}};
      for (const auto& [name, node] : known) step.set.emplace_back(name, node);
      steps.push_back(std::move(step));
    }
    // The last row holds as long as the one before it did.
    if (steps.size() > 1) length = steps.back().at + (steps.back().at - steps[steps.size() - 2].at);
    return steps;
  }

  // Each line is a millisecond at which one packet of 1500 bytes may leave. What a bin holds of
  // them is its rate; a bin of none counts as one, for a packet begun at no rate would never end.
  std::vector<Step> steps_of_mahimahi(const Source& source, const Node& trace, Duration& length) {
    const Duration bin = duration_of(trace.find("bin")).value_or(Duration::milliseconds(100));
    if (bin.ns < 1'000'000) {
      diagnostics_.error(trace, "a bin is at least 1ms");
      return {};
    }
    constexpr std::int64_t frame_bits = 8 * 1514;
    std::map<std::int64_t, std::int64_t> counts;
    std::int64_t last = 0;
    std::size_t number = 0;
    for (const std::vector<Cell>& row : read_csv(source, diagnostics_)) {
      const std::string& text = row[0].text;
      ++number;
      if (row.size() != 1 || text.empty() || text.size() > 12 ||
          text.find_first_not_of("0123456789") != std::string::npos) {
        diagnostics_.error(row[0].place, "'" + text + "' is no whole number of milliseconds");
        return {};
      }
      const std::int64_t ms = std::stoll(text);
      if (ms < last) {
        diagnostics_.error(row[0].place, "the times descend; sort the lines");
        return {};
      }
      last = ms;
      ++counts[ms * 1'000'000 / bin.ns];
    }
    if (number == 0 || last == 0) {
      diagnostics_.error(trace, "the trace is empty; each line is a time in milliseconds");
      return {};
    }
    length = Duration::milliseconds(last);
    std::vector<Step> steps;
    std::int64_t before = -1;
    const std::int64_t bins = (length.ns + bin.ns - 1) / bin.ns;
    if (bins > static_cast<std::int64_t>(most_steps)) {
      diagnostics_.error(trace, "that makes " + std::to_string(bins) + " bins; write a longer bin");
      return {};
    }
    for (std::int64_t i = 0; i < bins; ++i) {
      const auto found = counts.find(i);
      const std::int64_t count =
          std::max<std::int64_t>(1, found == counts.end() ? 0 : found->second);
      if (count == before) continue;
      before = count;
      const double seconds = bin.in_seconds();
      const BitRate rate{
          static_cast<std::int64_t>(static_cast<double>(count * frame_bits) / seconds)};
      steps.push_back({Duration{i * bin.ns},
                       trace.place,
                       {{"rate", make_scalar(to_string(rate), trace.place)},
                        {"layer", make_scalar("l2", trace.place)}}});
    }
    return steps;
  }

  Node& root_;
  std::string folder_;
  Diagnostics& diagnostics_;
};

}  // namespace

void resolve_imports(Node& root, const std::string& folder, Diagnostics& diagnostics) {
  Importer(root, folder, diagnostics).resolve();
}

}  // namespace orrery::config
