// What is known of a run besides its records: run.json without the parts that are derived from
// them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orrery::results {

/// Written before a run starts, completed when it ends. Together with the records it determines
/// every result, so nothing in here may be a time of day.
struct RunDescription {
  std::string name;
  std::string strategy;
  std::uint64_t seed = 0;
  std::string engine;      ///< "exact", "live", "virtual"
  std::string cost;        ///< "model", "profile", "measured"
  std::string experiment;  ///< the effective experiment, YAML
  std::vector<std::string> command_line;
  std::map<std::string, std::string> versions;  ///< orrery, kernel, libtorch, …
  std::map<std::string, std::string> host;      ///< processor, cores, system, …
  std::map<std::string, double> speeds;         ///< node name → relative speed; may be empty
  std::string profile_hash;                     ///< of the cost profile used; empty: none
  std::optional<double> profile_spread;         ///< the largest p95/p50 of its kernels
  double host_seconds = 0;                      ///< wall time of the whole run on the host
  std::optional<double>
      watchdog_share;  ///< longest standstill of emulated time / the watchdog's limit
};

nlohmann::json to_json(const RunDescription& description);
/// Ignores what it does not know (the derived parts of run.json). Throws Error that names the key.
RunDescription description_from_json(const nlohmann::json& json);

}  // namespace orrery::results
