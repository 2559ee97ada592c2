// Typed options: one declaration gives the check, the default, the JSON Schema and the help text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.hh"

namespace orrery {

enum class OptionKind {
  boolean,
  integer,
  number,
  text,
  choice,
  duration,
  bytes,
  bit_rate,
  probability
};

/// Values are kept in plain types; quantities in the unit of their value type
/// (ns, bytes, bits a second, fraction).
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

struct OptionSpec {
  std::string name;
  OptionKind kind = OptionKind::number;
  OptionValue fallback;                   ///< the default
  std::string help;                       ///< one line, unit and source included
  std::optional<double> minimum = {};     ///< inclusive
  std::optional<double> maximum = {};     ///< inclusive
  std::vector<std::string> choices = {};  ///< for OptionKind::choice
};

/// A complete set of values: each declared option is present (its default if the file is silent).
class Options {
 public:
  Options() = default;
  explicit Options(const std::vector<OptionSpec>& specs);

  void set(const std::string& name, OptionValue value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  /// Each throws std::logic_error for an undeclared name: that is a programmer's error.
  bool boolean(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  Duration duration(const std::string& name) const { return {integer(name)}; }
  Bytes bytes(const std::string& name) const { return {integer(name)}; }

  /// Ordered by name, so that everything made from it is repeatable.
  const std::map<std::string, OptionValue>& values() const { return values_; }

 private:
  std::map<std::string, OptionValue> values_;
};

}  // namespace orrery
