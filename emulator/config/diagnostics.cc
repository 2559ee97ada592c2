#include "emulator/config/diagnostics.hh"

#include <algorithm>
#include <tuple>

#include "emulator/config/document.hh"

namespace orrery::config {
namespace {

constexpr std::size_t errors_printed = 100;
constexpr std::size_t line_width = 120;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The byte at which the `column`th character (from 1) starts, or the end.
std::size_t byte_of_column(const std::string& line, std::size_t column) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (starts_character(line[i]) && ++characters == column) return i;
  return line.size();
}

std::size_t count_characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

/// The source line, shortened around the column if it is long, and a caret below.
std::string excerpt(const Place& place) {
  std::string line = place.source->line(place.line);
  std::size_t column = std::min(place.column, count_characters(line) + 1);
  for (char& c : line)
    if (c == '\t') c = ' ';
  const std::size_t from_column = column > line_width ? column - line_width / 2 : 1;
  const std::size_t from = byte_of_column(line, from_column);
  const std::size_t to = byte_of_column(line, from_column + line_width);
  line = (from > 0 ? "…" : "") + line.substr(from, to - from) + (to < line.size() ? "…" : "");
  column = column - from_column + 1 + (from > 0 ? 1 : 0);
  return "  " + line + "\n  " + std::string(column - 1, ' ') + "^\n";
}

}  // namespace

std::string Source::line(std::size_t number) const {
  if (number == 0 || number > line_starts.size()) return "";
  const std::size_t start = line_starts[number - 1];
  return text.substr(start, text.find('\n', start) - start);
}

const Source& Diagnostics::add_source(Source source) {
  source.line_starts = {0};
  for (std::size_t i = 0; i < source.text.size(); ++i)
    if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
  sources_.push_back(std::move(source));
  return sources_.back();
}

void Diagnostics::add(std::vector<Item>& items, Place at, const std::string& message) {
  if (seen_.emplace(at.source, at.line, at.column, message).second) items.push_back({at, message});
}

void Diagnostics::error(Place at, const std::string& message) { add(errors_, at, message); }

void Diagnostics::error(const Node& at, const std::string& message) {
  mark_bad(at);
  error(at.place, message);
}

void Diagnostics::error(const std::string& message) { add(errors_, {}, message); }

void Diagnostics::warning(Place at, const std::string& message) { add(warnings_, at, message); }

std::string Diagnostics::print(const Item& item, const char* severity) {
  const Place& place = item.place;
  if (!place.source) return severity + item.message + "\n";
  std::string where = place.source->name + ":";
  if (place.source->has_lines) where += std::to_string(place.line) + ":";
  where += std::to_string(place.column) + ": ";
  return where + severity + item.message + "\n" + excerpt(place);
}

std::vector<Diagnostics::Item> Diagnostics::of_source(const std::vector<Item>& items,
                                                      const Source* source) {
  std::vector<Item> chosen;
  for (const Item& item : items)
    if (item.place.source == source) chosen.push_back(item);
  std::stable_sort(chosen.begin(), chosen.end(), [](const Item& a, const Item& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  return chosen;
}

std::string Diagnostics::errors_text() const {
  std::vector<Item> items = of_source(errors_, nullptr);
  // In the order in which they were read: the file, then the `--set` items.
  for (const Source& source : sources_)
    for (Item& item : of_source(errors_, &source)) items.push_back(std::move(item));
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), errors_printed); ++i)
    text += print(items[i], "");
  if (items.size() > errors_printed)
    text += "and " + std::to_string(items.size() - errors_printed) + " more errors\n";
  return text;
}

std::vector<std::string> Diagnostics::warnings() const {
  std::vector<std::string> texts;
  for (const Source& source : sources_)
    for (const Item& item : of_source(warnings_, &source))
      texts.push_back(print(item, "warning: "));
  return texts;
}

void Diagnostics::throw_if_any() const {
  if (!ok()) throw InvalidFile(errors_text(), errors_.size());
}

}  // namespace orrery::config
