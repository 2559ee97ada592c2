// The types of single values.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hh"
#include "emulator/config/schema.hh"

namespace orrery::config {
namespace {

using Json = nlohmann::ordered_json;

std::string number_text(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

/// "a, b or c".
std::string alternatives(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i];
  return text;
}

template <typename T>
std::optional<T> read_whole(const Node& node) {
  if (!node.is_scalar() || node.quoted) return {};
  T value{};
  const char* end = node.text.data() + node.text.size();
  const auto [stop, failure] = std::from_chars(node.text.data(), end, value);
  if (failure != std::errc{} || stop != end) return {};
  return value;
}

/// A type of which the whole check is one question.
class ScalarType : public Type {
 public:
  void check(const Node& node, Diagnostics& diagnostics) const final {
    if (node.is_scalar() && accepts(node)) return;
    std::string what = describe(node);
    if (node.is_scalar() && node.quoted && wants_plain()) what += " (in quotes, so a text)";
    diagnostics.error(node, what + " is not " + expects() + advice(node));
  }

 protected:
  virtual bool accepts(const Node& node) const = 0;
  virtual std::string advice(const Node&) const { return ""; }
  /// True where quotes make a text of what would else be right.
  virtual bool wants_plain() const { return true; }
};

class AnyType : public Type {
 public:
  void check(const Node&, Diagnostics&) const override {}
  Json json_schema(Json&) const override { return Json::object(); }
  std::string expects() const override { return "a value"; }
};

class BooleanType : public ScalarType {
 public:
  Json json_schema(Json&) const override { return {{"type", "boolean"}}; }
  std::string expects() const override { return "`true` or `false`"; }

 protected:
  bool accepts(const Node& node) const override { return read_boolean(node).has_value(); }
  std::string advice(const Node&) const override { return "; write one of them"; }
};

class IntegerType : public ScalarType {
 public:
  IntegerType(std::int64_t minimum, std::optional<std::int64_t> maximum)
      : minimum_(minimum), maximum_(maximum) {}
  Json json_schema(Json&) const override {
    Json schema{{"type", "integer"}, {"minimum", minimum_}};
    if (maximum_) schema["maximum"] = *maximum_;
    return schema;
  }
  std::string expects() const override {
    std::string text = "a whole number from " + std::to_string(minimum_);
    return maximum_ ? text + " to " + std::to_string(*maximum_) : text;
  }

 protected:
  bool accepts(const Node& node) const override {
    const auto value = read_integer(node);
    return value && *value >= minimum_ && (!maximum_ || *value <= *maximum_);
  }
  std::string advice(const Node&) const override {
    return "; write e.g. " + std::to_string(minimum_ > 0 || !maximum_ ? minimum_ : *maximum_);
  }

 private:
  std::int64_t minimum_;
  std::optional<std::int64_t> maximum_;
};

class UnsignedType : public ScalarType {
 public:
  Json json_schema(Json&) const override {
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", UINT64_MAX}};
  }
  std::string expects() const override { return "a whole number from 0 to 2^64 - 1"; }

 protected:
  bool accepts(const Node& node) const override { return read_unsigned(node).has_value(); }
  std::string advice(const Node&) const override { return "; write e.g. 1"; }
};

class NumberType : public ScalarType {
 public:
  NumberType(std::optional<double> minimum, std::optional<double> maximum, bool above)
      : minimum_(minimum), maximum_(maximum), above_(above) {}
  Json json_schema(Json&) const override {
    Json schema{{"type", "number"}};
    if (minimum_) schema[above_ ? "exclusiveMinimum" : "minimum"] = *minimum_;
    if (maximum_) schema["maximum"] = *maximum_;
    return schema;
  }
  std::string expects() const override {
    std::string text = "a number";
    if (minimum_) text += (above_ ? " above " : " from ") + number_text(*minimum_);
    if (maximum_) text += (minimum_ ? " to " : " up to ") + number_text(*maximum_);
    return text;
  }

 protected:
  bool accepts(const Node& node) const override {
    const auto value = read_number(node);
    if (!value) return false;
    if (minimum_ && (above_ ? *value <= *minimum_ : *value < *minimum_)) return false;
    return !maximum_ || *value <= *maximum_;
  }
  std::string advice(const Node&) const override {
    const double example = maximum_ ? *maximum_ : minimum_.value_or(0) + (above_ ? 1 : 0);
    return "; write e.g. " + number_text(example);
  }

 private:
  std::optional<double> minimum_;
  std::optional<double> maximum_;
  bool above_;
};

class TextType : public ScalarType {
 public:
  Json json_schema(Json&) const override { return {{"type", "string"}}; }
  std::string expects() const override { return "a text"; }

 protected:
  bool accepts(const Node&) const override { return true; }
  std::string advice(const Node&) const override { return "; write it on one line"; }
  bool wants_plain() const override { return false; }
};

class NameType : public ScalarType {
 public:
  Json json_schema(Json&) const override {
    return {{"type", "string"}, {"pattern", "^[A-Za-z][A-Za-z0-9_-]{0,62}$"}};
  }
  std::string expects() const override { return "a name"; }

 protected:
  bool accepts(const Node& node) const override { return is_name(node.text); }
  std::string advice(const Node&) const override { return "; " + name_advice(); }
  bool wants_plain() const override { return false; }
};

class ChoiceType : public Type {
 public:
  explicit ChoiceType(std::vector<std::string> values) : values_(std::move(values)) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (!node.is_scalar()) {
      diagnostics.error(node, describe(node) + " is not expected here; write " + expects());
      return;
    }
    if (std::find(values_.begin(), values_.end(), node.text) != values_.end()) return;
    const auto near = nearest(node.text, values_);
    diagnostics.error(
        node, describe(node) + " is not known here; " +
                  (near && values_.size() > 1 ? "did you mean " + *near + "? Write " : "write ") +
                  alternatives(values_));
  }
  Json json_schema(Json&) const override { return {{"enum", values_}}; }
  std::string expects() const override {
    std::vector<std::string> quoted;
    for (const std::string& value : values_) quoted.push_back("`" + value + "`");
    return alternatives(quoted);
  }

 private:
  std::vector<std::string> values_;
};

class QuantityType : public Type {
 public:
  QuantityType(std::string expected, std::string pattern,
               std::function<void(const std::string&)> parse)
      : expects_(std::move(expected)), pattern_(std::move(pattern)), parse_(std::move(parse)) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (!node.is_scalar()) {
      diagnostics.error(node, describe(node) + " is not expected here; write " + expects_);
      return;
    }
    try {
      parse_(node.text);
    } catch (const ValueError& failure) {
      diagnostics.error(node, failure.what());
    }
  }
  Json json_schema(Json&) const override {
    return {{"type", Json::array({"string", "number"})}, {"pattern", pattern_}};
  }
  std::string expects() const override { return expects_; }

 private:
  std::string expects_;
  std::string pattern_;
  std::function<void(const std::string&)> parse_;
};

class WordOrType : public Type {
 public:
  WordOrType(std::vector<std::string> words, TypePtr other)
      : words_(std::move(words)), other_(std::move(other)) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (node.is_scalar()) {
      if (std::find(words_.begin(), words_.end(), node.text) != words_.end()) return;
      // A quantity explains what is wrong with it better than "write one of".
      const bool explains = dynamic_cast<const QuantityType*>(other_.get()) != nullptr;
      if (!explains || nearest(node.text, words_)) {
        Diagnostics other;
        other_->check(node, other);
        if (!other.ok())
          diagnostics.error(node, describe(node) + " is not expected here; write " + expects());
        return;
      }
    }
    other_->check(node, diagnostics);
  }
  Json json_schema(Json& definitions) const override {
    return {{"anyOf", Json::array({Json{{"enum", words_}}, other_->json_schema(definitions)})}};
  }
  std::string expects() const override {
    std::vector<std::string> all;
    for (const std::string& word : words_) all.push_back("`" + word + "`");
    all.push_back(other_->expects());
    return alternatives(all);
  }
  std::vector<const ObjectType*> objects() const override { return other_->objects(); }

 private:
  std::vector<std::string> words_;
  TypePtr other_;
};

// The digits of a quantity, for JSON Schema.
constexpr const char* digits = "^[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)? ?";

std::string pattern(const std::string& units) { return digits + ("(" + units + ")$"); }

}  // namespace

bool is_name(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto other = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 63 && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), other);
}

std::string name_advice() { return "write a letter, then letters, digits, '_' or '-', at most 63"; }

TypePtr anything() { return std::make_shared<AnyType>(); }
TypePtr boolean() { return std::make_shared<BooleanType>(); }
TypePtr integer(std::int64_t minimum, std::optional<std::int64_t> maximum) {
  return std::make_shared<IntegerType>(minimum, maximum);
}
TypePtr unsigned_integer() { return std::make_shared<UnsignedType>(); }
TypePtr number(std::optional<double> minimum, std::optional<double> maximum, bool above_minimum) {
  return std::make_shared<NumberType>(minimum, maximum, above_minimum);
}
TypePtr text() { return std::make_shared<TextType>(); }
TypePtr name() { return std::make_shared<NameType>(); }
TypePtr choice(std::vector<std::string> values) {
  return std::make_shared<ChoiceType>(std::move(values));
}
TypePtr word_or(std::vector<std::string> words, TypePtr other) {
  return std::make_shared<WordOrType>(std::move(words), std::move(other));
}
TypePtr quantity(std::string expects, std::string pattern,
                 std::function<void(const std::string&)> parse) {
  return std::make_shared<QuantityType>(std::move(expects), std::move(pattern), std::move(parse));
}

TypePtr duration() {
  return quantity("a duration, as in `20ms`", pattern("ns|us|µs|ms|s|min|h"),
                  [](const std::string& text) { parse_duration(text); });
}
TypePtr positive_duration() {
  return quantity(
      "a duration above zero, as in `20s`", pattern("ns|us|µs|ms|s|min|h"),
      [](const std::string& text) {
        if (parse_duration(text).ns == 0)
          throw ValueError("'" + text + "' is zero; write a duration above it, as in 20s");
      });
}
TypePtr bit_rate() {
  return quantity("a rate, as in `100Mbit/s`", pattern("[kMG]?(bit|B)/s"),
                  [](const std::string& text) { parse_bit_rate(text); });
}
TypePtr bytes() {
  return quantity("a size, as in `256KiB`", pattern("B|[kMG]B|[KMG]iB"),
                  [](const std::string& text) { parse_bytes(text); });
}
TypePtr probability() {
  return quantity("a probability, as in `0.1%` or `0.001`", pattern("%?"),
                  [](const std::string& text) { parse_probability(text); });
}

TypePtr option_type(const OptionSpec& spec) {
  switch (spec.kind) {
    case OptionKind::boolean:
      return boolean();
    case OptionKind::integer: {
      std::optional<std::int64_t> maximum;
      if (spec.maximum) maximum = static_cast<std::int64_t>(*spec.maximum);
      const double least = static_cast<double>(INT64_MIN);
      return integer(static_cast<std::int64_t>(spec.minimum.value_or(least)), maximum);
    }
    case OptionKind::number:
      return number(spec.minimum, spec.maximum);
    case OptionKind::text:
      return text();
    case OptionKind::choice:
      return choice(spec.choices);
    case OptionKind::duration:
      return duration();
    case OptionKind::bytes:
      return bytes();
    case OptionKind::bit_rate:
      return bit_rate();
    case OptionKind::probability:
      return probability();
  }
  return text();
}

std::optional<bool> read_boolean(const Node& node) {
  if (!node.is_scalar() || node.quoted) return {};
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  return {};
}

std::optional<std::int64_t> read_integer(const Node& node) {
  return read_whole<std::int64_t>(node);
}

std::optional<std::uint64_t> read_unsigned(const Node& node) {
  return read_whole<std::uint64_t>(node);
}

std::optional<double> read_number(const Node& node) {
  const auto value = read_whole<double>(node);
  if (!value || !std::isfinite(*value)) return {};
  return value;
}

std::optional<std::string> nearest(const std::string& text,
                                   const std::vector<std::string>& candidates) {
  // Damerau-Levenshtein, restricted: a swap of neighbours counts once.
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    return d[a.size()][b.size()];
  };
  if (text.size() > 80) return {};
  std::optional<std::string> best;
  std::size_t best_distance =
      std::max<std::size_t>(1, std::min<std::size_t>(3, text.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(text, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace orrery::config
