// From a file to an experiment: parse, check against the schema, read, check what it means.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/diagnostics.hh"
#include "emulator/config/document.hh"
#include "emulator/config/experiment.hh"
#include "emulator/config/strategy_catalog.hh"

namespace orrery::config {

struct Loaded {
  Experiment experiment;
  std::vector<std::string> warnings;  ///< as printed: place, text, source line, caret
};

/// Throws InvalidFile with every error at once. `overrides` are `--set` items: `a.b.c=VALUE`.
Loaded load(const std::string& path, const StrategyCatalog& strategies,
            const std::vector<std::string>& overrides = {});
/// The same from a text; `name` stands for the file in messages.
Loaded load_text(const std::string& name, const std::string& text,
                 const StrategyCatalog& strategies, const std::vector<std::string>& overrides = {});

/// The same from a tree of `diagnostics`' sources, which may hold errors already.
Loaded load_tree(Node root, const StrategyCatalog& strategies, Diagnostics& diagnostics);

/// The effective experiment, everything explicit: load_text(to_yaml(e)) == e. A run directory keeps
/// it, so that a run can be repeated whatever becomes of defaults and profiles. The catalog says in
/// which units the strategies' options are.
std::string to_yaml(const Experiment& experiment, const StrategyCatalog& strategies);

}  // namespace orrery::config
