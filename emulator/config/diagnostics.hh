// What is wrong with a file, all at once: `file:line:col: what; what would be right`, then the
// source line and a caret.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hh"

namespace orrery::config {

struct Node;

/// A text that was read: a file, or one `--set` item.
struct Source {
  std::string name;
  std::string text;
  bool has_lines = true;  ///< false: `--set` items are one line, only the column is printed
  std::vector<std::size_t> line_starts = {};   ///< filled in by Diagnostics::add_source
  std::string line(std::size_t number) const;  ///< 1-based, without its end
};

/// Where something was written. Line and column count from 1, columns in characters.
struct Place {
  const Source* source = nullptr;
  std::size_t line = 1;
  std::size_t column = 1;
};

/// Thrown once a file is known to be wrong; `what()` is the full text to print.
class InvalidFile : public Error {
 public:
  InvalidFile(const std::string& text, std::size_t count)
      : Error(text, ExitCode::usage), count_(count) {}
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
};

/// Collects errors and warnings; owns the sources that their places point into.
class Diagnostics {
 public:
  Diagnostics() = default;
  Diagnostics(const Diagnostics&) = delete;
  Diagnostics& operator=(const Diagnostics&) = delete;

  const Source& add_source(Source source);

  /// `message` is "what; what would be right". The same message at the same place is kept once.
  void error(Place at, const std::string& message);
  /// Also marks the node, so that later checks leave it alone.
  void error(const Node& at, const std::string& message);
  /// An error that has no place, e.g. a missing file.
  void error(const std::string& message);
  void warning(Place at, const std::string& message);
  void mark_bad(const Node& node) { bad_.insert(&node); }

  bool ok() const { return errors_.empty(); }
  bool bad(const Node& node) const { return bad_.count(&node) != 0; }
  std::size_t error_count() const { return errors_.size(); }
  /// As printed, in the order of the file.
  std::string errors_text() const;
  std::vector<std::string> warnings() const;
  void throw_if_any() const;

  /// The text could not be read to its end: what follows from its tree would be noise.
  void mark_broken() { broken_ = true; }
  void throw_if_broken() const {
    if (broken_) throw_if_any();
  }

 private:
  struct Item {
    Place place;
    std::string message;
  };
  static std::string print(const Item& item, const char* severity);
  /// Those of one source, in the order of the text.
  static std::vector<Item> of_source(const std::vector<Item>& items, const Source* source);
  void add(std::vector<Item>& items, Place at, const std::string& message);

  std::deque<Source> sources_;
  std::vector<Item> errors_;
  std::vector<Item> warnings_;
  std::set<std::tuple<const Source*, std::size_t, std::size_t, std::string>> seen_;
  std::set<const Node*> bad_;
  bool broken_ = false;
};

}  // namespace orrery::config
