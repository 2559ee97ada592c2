// The experiment file's schema: from it come the check, the JSON Schema of `orrery schema` and the
// tables of docs/experiment-file.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "emulator/config/schema.hh"
#include "emulator/config/strategy_catalog.hh"

namespace orrery::config {

/// The shape of a whole file.
TypePtr experiment_schema(const StrategyCatalog& strategies);

/// JSON Schema, draft 2020-12.
nlohmann::ordered_json experiment_json_schema(const StrategyCatalog& strategies);

/// Markdown: one table an object. Options of strategies are left to `orrery list strategies`.
std::string experiment_reference();

}  // namespace orrery::config
