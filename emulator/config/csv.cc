#include "emulator/config/csv.hh"

#include <string_view>

namespace orrery::config {
namespace {

std::string trimmed(std::string text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  std::size_t begin = 0;
  while (begin < text.size() && space(text[begin])) ++begin;
  return text.substr(begin);
}

std::vector<Cell> cells_of(std::string_view line, const Place& begin, Diagnostics& diagnostics) {
  std::vector<Cell> cells;
  std::size_t at = 0;
  for (;;) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    Cell cell{"", {begin.source, begin.line, at + 1}};
    if (at < line.size() && line[at] == '"') {
      ++at;
      for (;; ++at) {
        if (at >= line.size()) {
          diagnostics.error(cell.place, "this text does not end; close it with '\"'");
          break;
        }
        if (line[at] == '"' && at + 1 < line.size() && line[at + 1] == '"')
          ++at;
        else if (line[at] == '"')
          break;
        cell.text += line[at];
      }
      at = std::min(line.find(',', std::min(at, line.size())), line.size());
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cell.text = trimmed(std::string(line.substr(at, end - at)));
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at >= line.size()) return cells;
    ++at;
  }
}

}  // namespace

std::vector<std::vector<Cell>> read_csv(const Source& source, Diagnostics& diagnostics) {
  std::vector<std::vector<Cell>> rows;
  std::size_t number = 0;
  for (std::size_t at = 0; at < source.text.size();) {
    const std::size_t end = std::min(source.text.find('\n', at), source.text.size());
    const std::string_view line(source.text.data() + at, end - at);
    ++number;
    at = end + 1;
    const std::string text = trimmed(std::string(line));
    if (text.empty() || text[0] == '#') continue;
    const std::string_view whole = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    rows.push_back(cells_of(whole, {&source, number, 1}, diagnostics));
  }
  return rows;
}

}  // namespace orrery::config
