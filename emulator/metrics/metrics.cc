#include "emulator/metrics/metrics.hh"

namespace orrery::metrics {
namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].id != static_cast<Id>(i)) return false;
  return true;
}
static_assert(in_order(), "the table's rows stand in the order of Id");
static_assert(table.size() == static_cast<std::size_t>(Id::records) + 1);

std::string labels_text(std::string_view labels) {
  std::string text = "`run`";
  while (!labels.empty()) {
    const auto comma = labels.find(',');
    text += ", `" + std::string(labels.substr(0, comma)) + "`";
    labels = comma == std::string_view::npos ? "" : labels.substr(comma + 1);
  }
  return text;
}

}  // namespace

std::string metrics_markdown() {
  std::string text =
      "# Metrics\n"
      "\n"
      "`orrery run FILE --metrics ADDRESS` serves these at `http://ADDRESS/metrics` in the "
      "Prometheus\n"
      "text format while the experiment goes on. ADDRESS is `HOST:PORT`, `:PORT` or `PORT`; with "
      "port 0\n"
      "the system picks a free one. Every metric has the label `run`: the runs of a suite go on "
      "side by\n"
      "side and share one page.\n"
      "\n"
      "Emulated time is time of the emulated cluster; host time is time of the machine that "
      "emulates.\n"
      "\n"
      "This page is made from the table in `emulator/metrics/metrics.hh`, and a test compares the "
      "two.\n"
      "\n"
      "| metric | type | unit | labels | what it says |\n"
      "|---|---|---|---|---|\n";
  for (const Metric& m : table) {
    text += "| `" + std::string(m.name) + "` | " + (m.type == Type::counter ? "counter" : "gauge") +
            " | " + (m.unit.empty() ? "–" : std::string(m.unit)) + " | " + labels_text(m.labels) +
            " | " + std::string(m.help) + ". |\n";
  }
  return text;
}

}  // namespace orrery::metrics
