#include "emulator/config/load.hh"

#include <filesystem>

#include "emulator/config/experiment_schema.hh"
#include "emulator/config/imports.hh"
#include "emulator/config/read_experiment.hh"

namespace orrery::config {
namespace {

Loaded finish(Node root, const StrategyCatalog& strategies,
              const std::vector<std::string>& overrides, Diagnostics& diagnostics) {
  // A text that breaks off would only be reported as incomplete once more.
  diagnostics.throw_if_broken();
  if (root.is_null()) {
    diagnostics.error(root.place.source->name +
                      ": the file is empty; write a starter with `orrery init`");
    diagnostics.throw_if_any();
  }
  for (const std::string& item : overrides) apply_override(root, item, diagnostics);
  const std::string& file = root.place.source->name;
  resolve_imports(root, std::filesystem::path(file).parent_path(), diagnostics);
  experiment_schema(strategies)->check(root, diagnostics);
  Read read = read_experiment(root, strategies, diagnostics);
  check_experiment(read, strategies, diagnostics);
  diagnostics.throw_if_any();
  return {std::move(read.experiment), diagnostics.warnings()};
}

}  // namespace

Loaded load(const std::string& path, const StrategyCatalog& strategies,
            const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  Node root = read_document(path, diagnostics);
  return finish(std::move(root), strategies, overrides, diagnostics);
}

Loaded load_text(const std::string& name, const std::string& text,
                 const StrategyCatalog& strategies, const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  Node root = parse_document(name, text, diagnostics);
  return finish(std::move(root), strategies, overrides, diagnostics);
}

Loaded load_tree(Node root, const StrategyCatalog& strategies, Diagnostics& diagnostics) {
  return finish(std::move(root), strategies, {}, diagnostics);
}

}  // namespace orrery::config
