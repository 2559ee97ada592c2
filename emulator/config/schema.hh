// The declarative description of a file. One declaration gives the check with places, the JSON
// Schema and the reference table.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.hh"
#include "emulator/config/document.hh"

namespace orrery::config {

class ObjectType;

/// What a value may be.
class Type {
 public:
  virtual ~Type() = default;
  /// Reports everything that is wrong with `node`, and marks the bad nodes.
  virtual void check(const Node& node, Diagnostics& diagnostics) const = 0;
  /// Named objects are put into `definitions` once and referred to.
  virtual nlohmann::ordered_json json_schema(nlohmann::ordered_json& definitions) const = 0;
  /// What to write, in few words: "a duration, as in 20ms".
  virtual std::string expects() const = 0;
  /// The objects inside, for the reference: itself, of a list its items, and so on.
  virtual std::vector<const ObjectType*> objects() const { return {}; }
};

using TypePtr = std::shared_ptr<const Type>;

struct Field {
  std::string key;
  TypePtr type;
  std::string doc;       ///< one line
  std::string fallback;  ///< the default as written in a file; "" where there is none
  bool required = false;
};

Field required(std::string key, TypePtr type, std::string doc);
Field optional(std::string key, TypePtr type, std::string doc, std::string fallback = "");

/// A map with known keys.
class ObjectType : public Type {
 public:
  ObjectType(std::string name, std::vector<Field> fields);
  /// Exactly one of these keys must be there: a tagged union.
  ObjectType& exactly_one(std::vector<std::string> keys);
  /// At least one of these keys must be there.
  ObjectType& at_least_one(std::vector<std::string> keys);
  /// These keys may not stand together.
  ObjectType& not_both(std::string a, std::string b);
  /// The type of `field` depends on the value of `tag`, which is one of the cases.
  ObjectType& switch_on(std::string tag, std::string field, std::map<std::string, TypePtr> cases);

  const std::string& name() const { return name_; }
  const std::vector<Field>& fields() const { return fields_; }
  /// Sentences on the rules above, for the reference.
  std::vector<std::string> rules() const;

  void check(const Node& node, Diagnostics& diagnostics) const override;
  nlohmann::ordered_json json_schema(nlohmann::ordered_json& definitions) const override;
  std::string expects() const override;
  std::vector<const ObjectType*> objects() const override { return {this}; }

 private:
  struct Switch {
    std::string tag;
    std::string field;
    std::map<std::string, TypePtr> cases;
  };
  const Field* field(const std::string& key) const;
  void check_fields(const Node& node, Diagnostics& diagnostics) const;
  void check_rules(const Node& node, Diagnostics& diagnostics) const;
  /// nullptr where it depends on a tag that is missing or unknown.
  const Type* type_of(const Field& field, const Node& node) const;

  std::string name_;
  std::vector<Field> fields_;
  std::vector<std::vector<std::string>> exactly_one_;
  std::vector<std::vector<std::string>> at_least_one_;
  std::vector<std::pair<std::string, std::string>> not_both_;
  std::optional<Switch> switch_;
};

std::shared_ptr<ObjectType> object(std::string name, std::vector<Field> fields);
/// `what` is an item of it, for messages: "node".
TypePtr list_of(TypePtr item, std::string what, std::size_t at_least = 0,
                std::size_t at_most = std::numeric_limits<std::size_t>::max());
/// Keys are names.
TypePtr map_of(TypePtr value, std::string what, std::size_t at_least = 0);

/// What something else will check.
TypePtr anything();
TypePtr boolean();
TypePtr integer(std::int64_t minimum, std::optional<std::int64_t> maximum = {});
/// 0 to 2^64 - 1.
TypePtr unsigned_integer();
TypePtr number(std::optional<double> minimum = {}, std::optional<double> maximum = {},
               bool above_minimum = false);
TypePtr text();
/// A letter, then letters, digits, `_` and `-`: what can stand in a path of `--set`.
TypePtr name();
TypePtr choice(std::vector<std::string> values);
/// One of the words, or else `other`.
TypePtr word_or(std::vector<std::string> words, TypePtr other);
/// Any text form that `parse` accepts; it throws ValueError for the others. `pattern` is for the
/// JSON Schema, `expects` for messages.
TypePtr quantity(std::string expects, std::string pattern,
                 std::function<void(const std::string&)> parse);
/// A scalar for `scalar`, a list for `list`.
TypePtr scalar_or_list(TypePtr scalar, TypePtr list);

TypePtr duration();
TypePtr positive_duration();
TypePtr bit_rate();
TypePtr bytes();
TypePtr probability();

/// The type that an option of a strategy takes.
TypePtr option_type(const OptionSpec& spec);

/// The candidate nearest to `text` by edit distance, or none if all are far.
std::optional<std::string> nearest(const std::string& text,
                                   const std::vector<std::string>& candidates);

/// What name() accepts, and what to say where it does not.
bool is_name(const std::string& text);
std::string name_advice();

/// Scalars as YAML 1.2 reads them; none where the text is something else.
std::optional<bool> read_boolean(const Node& node);
std::optional<std::int64_t> read_integer(const Node& node);
std::optional<std::uint64_t> read_unsigned(const Node& node);
std::optional<double> read_number(const Node& node);

}  // namespace orrery::config
