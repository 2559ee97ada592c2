#include "emulator/results/description.hh"

#include <nlohmann/json.hpp>

#include "base/error.hh"

namespace orrery::results {
namespace {

template <typename T>
void read(const nlohmann::json& json, const char* key, T& value) {
  const auto at = json.find(key);
  if (at == json.end() || at->is_null()) return;
  try {
    value = at->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error("run.json: \"" + std::string(key) + "\" is " + at->type_name() +
                "; a run's own run.json has another type here");
  }
}

void read(const nlohmann::json& json, const char* key, std::optional<double>& value) {
  const auto at = json.find(key);
  if (at == json.end() || at->is_null()) return;
  double number = 0;
  read(json, key, number);
  value = number;
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

nlohmann::json to_json(const RunDescription& description) {
  return {{"name", description.name},
          {"strategy", description.strategy},
          {"seed", description.seed},
          {"engine", description.engine},
          {"cost", description.cost},
          {"experiment", description.experiment},
          {"command_line", description.command_line},
          {"versions", description.versions},
          {"host", description.host},
          {"speeds", description.speeds},
          {"profile_hash", description.profile_hash},
          {"profile_spread", or_null(description.profile_spread)},
          {"host_seconds", description.host_seconds},
          {"watchdog_share", or_null(description.watchdog_share)}};
}

RunDescription description_from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw Error("run.json is not a JSON object; run the experiment again");
  RunDescription description;
  read(json, "name", description.name);
  read(json, "strategy", description.strategy);
  read(json, "seed", description.seed);
  read(json, "engine", description.engine);
  read(json, "cost", description.cost);
  read(json, "experiment", description.experiment);
  read(json, "command_line", description.command_line);
  read(json, "versions", description.versions);
  read(json, "host", description.host);
  read(json, "speeds", description.speeds);
  read(json, "profile_hash", description.profile_hash);
  read(json, "profile_spread", description.profile_spread);
  read(json, "host_seconds", description.host_seconds);
  read(json, "watchdog_share", description.watchdog_share);
  return description;
}

}  // namespace orrery::results
