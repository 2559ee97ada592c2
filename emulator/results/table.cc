#include "emulator/results/table.hh"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/results/numbers.hh"

namespace orrery::results {
namespace {

constexpr std::size_t shortest_name = 10;

struct Column {
  std::string head;
  std::vector<std::string> cells;
  bool is_name = false;  ///< left-aligned, may be shortened
  int drop_first = 0;    ///< 0: never dropped; else the lowest goes first when there is no room
  std::size_t width() const;
};

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::size_t Column::width() const {
  std::size_t widest = width_of(head);
  for (const std::string& cell : cells) widest = std::max(widest, width_of(cell));
  return widest;
}

// A name from a file must not move the cursor or colour the terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::string kept;
  std::size_t used = 0;
  for (const char c : text) {
    if (starts_character(c) && used++ == width - 1) break;
    kept += c;
  }
  return kept + "…";
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

std::int64_t kind(const RunSummary& run, const char* name) {
  const auto at = run.bytes.find(name);
  return at == run.bytes.end() ? 0 : at->second;
}

std::string kind_text(const RunSummary& run, const char* name) {
  const std::int64_t bytes = kind(run, name);
  return bytes == 0 ? "0" : bytes_text(static_cast<double>(bytes));
}

std::string work_text(const RunSummary& run) {
  if (run.evaluations > 0) return std::to_string(run.evaluations) + " evals";
  return std::to_string(run.iterations) + " steps";
}

std::vector<Column> columns(std::span<const RunSummary> runs) {
  std::vector<Column> list;
  const auto add = [&](const char* head, auto cell, bool is_name = false, int drop_first = 0) {
    Column column{head, {}, is_name, drop_first};
    for (const RunSummary& run : runs) column.cells.push_back(cell(run));
    list.push_back(std::move(column));
  };
  add(
      "run", [](const RunSummary& run) { return printable(run.name); }, true);
  add(
      "strategy", [](const RunSummary& run) { return printable(run.strategy); }, true, 2);
  add("accuracy", [](const RunSummary& run) {
    return std::isfinite(run.accuracy) ? fixed_text(100 * run.accuracy, 1) + " %" : "–";
  });
  add("loss", [](const RunSummary& run) { return fixed_text(run.loss, 4); });
  add("emulated", [](const RunSummary& run) { return duration_text(run.emulated_seconds); });
  add("wire",
      [](const RunSummary& run) { return bytes_text(static_cast<double>(run.wire_bytes)); });
  add("activ.", [](const RunSummary& run) { return kind_text(run, "activation"); });
  add("grad.", [](const RunSummary& run) { return kind_text(run, "gradient"); });
  add("param.", [](const RunSummary& run) { return kind_text(run, "parameter"); });
  add(
      "scalar", [](const RunSummary& run) { return kind_text(run, "scalar"); }, false, 1);
  add("done", work_text);
  add("verdict", [](const RunSummary& run) { return std::string(to_string(run.verdict)); });
  return list;
}

std::size_t total_width(const std::vector<Column>& list) {
  std::size_t total = 2 * (list.size() - 1);
  for (const Column& column : list) total += column.width();
  return total;
}

// Shortens names, then drops what can be missed.
void fit(std::vector<Column>& list, std::size_t width) {
  for (;;) {
    while (total_width(list) > width) {
      Column* widest = nullptr;
      for (Column& column : list)
        if (column.is_name && column.width() > shortest_name &&
            (!widest || column.width() > widest->width()))
          widest = &column;
      if (!widest) break;
      const std::size_t to = widest->width() - 1;
      for (std::string& cell : widest->cells) cell = shortened(cell, to);
    }
    if (total_width(list) <= width) return;
    auto victim = list.end();
    for (auto at = list.begin(); at != list.end(); ++at)
      if (at->drop_first && (victim == list.end() || at->drop_first < victim->drop_first))
        victim = at;
    if (victim == list.end()) return;
    list.erase(victim);
  }
}

const char* colour_of(Grade grade) {
  switch (grade) {
    case Grade::faithful:
      return "\x1b[32m";
    case Grade::degraded:
      return "\x1b[33m";
    case Grade::invalid:
      return "\x1b[31m";
  }
  return "";
}

bool gradient_free(const RunSummary& run) {
  return run.samples_backward == 0 && kind(run, "gradient") == 0 && kind(run, "activation") > 0;
}

}  // namespace

std::string shipping_remark(std::span<const RunSummary> runs) {
  const RunSummary* free = nullptr;
  const RunSummary* sgd = nullptr;
  for (const RunSummary& run : runs) {
    if (gradient_free(run) && (!free || kind(run, "activation") > kind(*free, "activation")))
      free = &run;
    // Of several, the one that ships most, so that the sentence never flatters.
    if (kind(run, "gradient") > 0 && (!sgd || kind(run, "gradient") > kind(*sgd, "gradient")))
      sgd = &run;
  }
  if (!free || !sgd || kind(*free, "activation") <= kind(*sgd, "gradient")) return "";
  const auto activation = static_cast<double>(kind(*free, "activation"));
  const auto gradient = static_cast<double>(kind(*sgd, "gradient"));
  return "Gradient-free is not cheaper to ship here: " + printable(free->name) + " sends " +
         bytes_text(activation) + " as activations, " + fixed_text(activation / gradient, 1) +
         " times the " + bytes_text(gradient) + " that " + printable(sgd->name) +
         " sends as gradients.";
}

std::string summary_table(std::span<const RunSummary> runs, const TableStyle& style) {
  if (runs.empty()) return "No runs.\n";
  std::vector<Column> list = columns(runs);
  fit(list, static_cast<std::size_t>(std::max(style.width, 1)));

  std::string text;
  const auto line = [&](auto cell, const char* colour) {
    std::string row;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool last = i + 1 == list.size();
      std::string field =
          last ? cell(list[i]) : padded(cell(list[i]), list[i].width(), list[i].is_name);
      if (last && *colour) field = colour + field + "\x1b[0m";
      row += (i ? "  " : "") + field;
    }
    text += row + "\n";
  };
  line([](const Column& column) { return column.head; }, "");
  std::size_t rule = total_width(list);
  for (; rule > 0; --rule) text += "─";
  text += "\n";
  for (std::size_t r = 0; r < runs.size(); ++r)
    line([&](const Column& column) { return column.cells[r]; },
         style.colour ? colour_of(runs[r].verdict) : "");

  const std::string remark = shipping_remark(runs);
  if (!remark.empty()) text += "\n" + remark + "\n";
  return text;
}

}  // namespace orrery::results
