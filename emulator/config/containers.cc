// The types of maps and lists.
#include <algorithm>

#include "emulator/config/schema.hh"

namespace orrery::config {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class ListType : public Type {
 public:
  ListType(TypePtr item, std::string what, std::size_t at_least, std::size_t at_most)
      : item_(std::move(item)), what_(std::move(what)), at_least_(at_least), at_most_(at_most) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (!node.is_list()) {
      diagnostics.error(node, describe(node) + " is not a list; write " + expects() +
                                  ", each on a line that starts with '- '");
      return;
    }
    if (node.items.size() < at_least_)
      diagnostics.error(node, "the list has " + std::to_string(node.items.size()) +
                                  (node.items.size() == 1 ? " item" : " items") +
                                  "; write at least " + std::to_string(at_least_) + " (" + what_ +
                                  ")");
    if (node.items.size() > at_most_)
      diagnostics.error(node, "the list has " + std::to_string(node.items.size()) +
                                  " items; write at most " + std::to_string(at_most_) + " (" +
                                  what_ + ")");
    for (const Node& item : node.items) {
      if (item.is_null())
        diagnostics.error(
            item, "an item of the list is empty; write " + item_->expects() + ", or remove it");
      else
        item_->check(item, diagnostics);
    }
  }
  Json json_schema(Json& definitions) const override {
    Json schema{{"type", "array"}, {"items", item_->json_schema(definitions)}};
    if (at_least_ > 0) schema["minItems"] = at_least_;
    if (at_most_ < std::numeric_limits<std::size_t>::max()) schema["maxItems"] = at_most_;
    return schema;
  }
  std::string expects() const override { return "a list of " + what_; }
  std::vector<const ObjectType*> objects() const override { return item_->objects(); }

 private:
  TypePtr item_;
  std::string what_;
  std::size_t at_least_;
  std::size_t at_most_;
};

class MapType : public Type {
 public:
  MapType(TypePtr value, std::string what, std::size_t at_least)
      : value_(std::move(value)), what_(std::move(what)), at_least_(at_least) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (!node.is_map()) {
      diagnostics.error(node, describe(node) + " is not a map; write " + expects());
      return;
    }
    if (node.entries.size() < at_least_)
      diagnostics.error(node, "the map is empty; write " + expects());
    for (const Entry& entry : node.entries) {
      if (!is_name(entry.key)) {
        diagnostics.mark_bad(node);
        diagnostics.error(entry.place, "'" + entry.key + "' is not a name; " + name_advice());
      }
      if (entry.value.is_null()) {
        diagnostics.mark_bad(node);
        diagnostics.error(entry.place,
                          "'" + entry.key + "' has no value; write " + value_->expects());
      } else {
        value_->check(entry.value, diagnostics);
      }
    }
  }
  Json json_schema(Json& definitions) const override {
    return {{"type", "object"},
            {"propertyNames", config::name()->json_schema(definitions)},
            {"additionalProperties", value_->json_schema(definitions)}};
  }
  std::string expects() const override { return "a map of name to " + what_; }
  std::vector<const ObjectType*> objects() const override { return value_->objects(); }

 private:
  TypePtr value_;
  std::string what_;
  std::size_t at_least_;
};

class ScalarOrListType : public Type {
 public:
  ScalarOrListType(TypePtr scalar, TypePtr list)
      : scalar_(std::move(scalar)), list_(std::move(list)) {}
  void check(const Node& node, Diagnostics& diagnostics) const override {
    if (node.is_list())
      list_->check(node, diagnostics);
    else if (node.is_scalar())
      scalar_->check(node, diagnostics);
    else
      diagnostics.error(node, describe(node) + " is not expected here; write " + expects());
  }
  Json json_schema(Json& definitions) const override {
    return {{"anyOf",
             Json::array({scalar_->json_schema(definitions), list_->json_schema(definitions)})}};
  }
  std::string expects() const override { return scalar_->expects() + ", or " + list_->expects(); }

 private:
  TypePtr scalar_;
  TypePtr list_;
};

}  // namespace

Field required(std::string key, TypePtr type, std::string doc) {
  return {std::move(key), std::move(type), std::move(doc), "", true};
}
Field optional(std::string key, TypePtr type, std::string doc, std::string fallback) {
  return {std::move(key), std::move(type), std::move(doc), std::move(fallback), false};
}

ObjectType::ObjectType(std::string name, std::vector<Field> fields)
    : name_(std::move(name)), fields_(std::move(fields)) {}

ObjectType& ObjectType::exactly_one(std::vector<std::string> keys) {
  exactly_one_.push_back(std::move(keys));
  return *this;
}
ObjectType& ObjectType::at_least_one(std::vector<std::string> keys) {
  at_least_one_.push_back(std::move(keys));
  return *this;
}
ObjectType& ObjectType::not_both(std::string a, std::string b) {
  not_both_.emplace_back(std::move(a), std::move(b));
  return *this;
}
ObjectType& ObjectType::switch_on(std::string tag, std::string field,
                                  std::map<std::string, TypePtr> cases) {
  switch_ = Switch{std::move(tag), std::move(field), std::move(cases)};
  return *this;
}

std::vector<std::string> ObjectType::rules() const {
  std::vector<std::string> sentences;
  for (const auto& keys : exactly_one_) sentences.push_back("Exactly one of " + joined(keys) + ".");
  for (const auto& keys : at_least_one_)
    sentences.push_back("At least one of " + joined(keys) + ".");
  for (const auto& [a, b] : not_both_) sentences.push_back("Not both " + a + " and " + b + ".");
  if (switch_)
    sentences.push_back("What " + switch_->field + " holds depends on " + switch_->tag + ".");
  return sentences;
}

std::string ObjectType::expects() const {
  const bool vowel =
      !name_.empty() && std::string("aeiou").find(name_.front()) != std::string::npos;
  return (vowel ? "an `" : "a `") + name_ + "` map";
}

const Field* ObjectType::field(const std::string& key) const {
  for (const Field& candidate : fields_)
    if (candidate.key == key) return &candidate;
  return nullptr;
}

const Type* ObjectType::type_of(const Field& field, const Node& node) const {
  if (!switch_ || switch_->field != field.key) return field.type.get();
  const Node* tag = node.find(switch_->tag);
  if (!tag || !tag->is_scalar()) return nullptr;
  const auto found = switch_->cases.find(tag->text);
  return found == switch_->cases.end() ? nullptr : found->second.get();
}

void ObjectType::check(const Node& node, Diagnostics& diagnostics) const {
  if (!node.is_map()) {
    std::vector<std::string> keys;
    for (const Field& known : fields_) keys.push_back(known.key);
    diagnostics.error(node, describe(node) + " is not a map; write " + expects() +
                                ", with the keys " + joined(keys));
    return;
  }
  check_fields(node, diagnostics);
  check_rules(node, diagnostics);
}

void ObjectType::check_fields(const Node& node, Diagnostics& diagnostics) const {
  std::vector<std::string> keys;
  for (const Field& known : fields_) keys.push_back(known.key);

  for (const Entry& entry : node.entries) {
    const Field* known = field(entry.key);
    if (!known) {
      const auto near = nearest(entry.key, keys);
      diagnostics.mark_bad(node);
      diagnostics.error(entry.place, "unknown key '" + entry.key + "' in " + name_ + "; " +
                                         (near           ? "did you mean '" + *near + "'?"
                                          : keys.empty() ? "it has no keys"
                                                         : "its keys are " + joined(keys)));
    } else if (const Type* type = type_of(*known, node)) {
      if (!entry.value.is_null()) {
        type->check(entry.value, diagnostics);
      } else {
        diagnostics.mark_bad(node);
        diagnostics.error(entry.place,
                          "'" + entry.key + "' has no value; write " + type->expects());
      }
    }
  }
  for (const Field& known : fields_)
    if (known.required && !node.entry(known.key))
      diagnostics.error(node, "'" + known.key + "' is missing in " + name_ + "; add `" + known.key +
                                  ":` and " + known.type->expects());
}

void ObjectType::check_rules(const Node& node, Diagnostics& diagnostics) const {
  const auto present = [&](const std::vector<std::string>& keys) {
    std::vector<const Entry*> found;
    for (const Entry& entry : node.entries)
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) found.push_back(&entry);
    return found;
  };
  for (const auto& keys : exactly_one_) {
    const auto found = present(keys);
    if (found.empty())
      diagnostics.error(node, "none of " + joined(keys) + " is in this " + name_ + "; add one");
    for (std::size_t i = 1; i < found.size(); ++i) {
      diagnostics.mark_bad(node);
      diagnostics.error(found[i]->place, "'" + found[i]->key + "' stands beside '" + found[0]->key +
                                             "'; write one of them in each " + name_);
    }
  }
  for (const auto& keys : at_least_one_)
    if (present(keys).empty())
      diagnostics.error(node,
                        "none of " + joined(keys) + " is in this " + name_ + "; add at least one");
  for (const auto& [a, b] : not_both_) {
    const auto found = present({a, b});
    if (found.size() < 2) continue;
    diagnostics.mark_bad(node);
    diagnostics.error(found[1]->place, "'" + found[1]->key + "' stands beside '" + found[0]->key +
                                           "'; write one of them");
  }
}

Json ObjectType::json_schema(Json& definitions) const {
  std::string key = name_;
  std::replace(key.begin(), key.end(), ' ', '_');
  const Json reference{{"$ref", "#/$defs/" + key}};
  if (definitions.contains(key)) return reference;
  definitions[key] = Json::object();  // ends a recursion

  Json properties = Json::object();
  Json needed = Json::array();
  for (const Field& known : fields_) {
    Json schema = known.type->json_schema(definitions);
    schema["description"] = known.doc;
    properties[known.key] = std::move(schema);
    if (known.required) needed.push_back(known.key);
  }
  Json all = Json::array();
  const auto have_one = [](const std::vector<std::string>& keys) {
    Json list = Json::array();
    for (const std::string& one : keys) list.push_back({{"required", Json::array({one})}});
    return list;
  };
  for (const auto& keys : exactly_one_) all.push_back({{"oneOf", have_one(keys)}});
  for (const auto& keys : at_least_one_) all.push_back({{"anyOf", have_one(keys)}});
  for (const auto& [a, b] : not_both_)
    all.push_back({{"not", {{"required", Json::array({a, b})}}}});
  if (switch_)
    for (const auto& [tag, type] : switch_->cases)
      all.push_back(
          {{"if", {{"properties", {{switch_->tag, {{"const", tag}}}}}}},
           {"then", {{"properties", {{switch_->field, type->json_schema(definitions)}}}}}});

  Json schema{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!needed.empty()) schema["required"] = needed;
  if (!all.empty()) schema["allOf"] = all;
  definitions[key] = schema;
  return reference;
}

std::shared_ptr<ObjectType> object(std::string name, std::vector<Field> fields) {
  return std::make_shared<ObjectType>(std::move(name), std::move(fields));
}
TypePtr list_of(TypePtr item, std::string what, std::size_t at_least, std::size_t at_most) {
  return std::make_shared<ListType>(std::move(item), std::move(what), at_least, at_most);
}
TypePtr map_of(TypePtr value, std::string what, std::size_t at_least) {
  return std::make_shared<MapType>(std::move(value), std::move(what), at_least);
}
TypePtr scalar_or_list(TypePtr scalar, TypePtr list) {
  return std::make_shared<ScalarOrListType>(std::move(scalar), std::move(list));
}

}  // namespace orrery::config
