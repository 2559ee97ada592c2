// The tables of docs/experiment-file.md.
#include <set>

#include "emulator/config/experiment_schema.hh"

namespace orrery::config {
namespace {

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

void write_object(const ObjectType& type, std::set<std::string>& written, std::string& out) {
  if (type.fields().empty() || !written.insert(type.name()).second) return;
  out += "### `" + type.name() + "`\n\n";
  out += "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const Field& field : type.fields()) {
    const std::string fallback = field.required           ? "*required*"
                                 : field.fallback.empty() ? "–"
                                                          : field.fallback;
    out += "| `" + field.key + "` | " + cell(field.type->expects()) + " | " + cell(fallback) +
           " | " + cell(field.doc) + " |\n";
  }
  for (const std::string& rule : type.rules()) out += "\n" + rule + "\n";
  out += "\n";
  for (const Field& field : type.fields())
    for (const ObjectType* inner : field.type->objects()) write_object(*inner, written, out);
}

}  // namespace

std::string experiment_reference() {
  std::string out;
  std::set<std::string> written;
  const TypePtr root = experiment_schema({});
  for (const ObjectType* object : root->objects()) write_object(*object, written, out);
  return out;
}

}  // namespace orrery::config
