// One line of figures a run: what `--json`, the table and the comparison show. docs/results.md
// defines each.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "emulator/results/description.hh"
#include "emulator/results/run_log.hh"
#include "emulator/results/verdict.hh"

namespace orrery::results {

/// NaN stands for "none" in the doubles; JSON shows it as null.
struct RunSummary {
  std::string name;
  std::string strategy;
  std::uint64_t seed = 0;
  Grade verdict = Grade::invalid;
  double accuracy = 0;  ///< test accuracy of the last evaluation, fraction
  double loss = 0;      ///< lowest objective loss, or the last training loss
  double emulated_seconds = 0;
  double host_seconds = 0;
  std::int64_t iterations = 0;
  std::int64_t evaluations = 0;
  std::int64_t samples_forward = 0;
  std::int64_t samples_backward = 0;
  std::map<std::string, std::int64_t> bytes;  ///< payload by kind
  std::int64_t wire_bytes = 0;
  double uncharged_ratio = 0;
  std::string profile_hash;
};

RunSummary summarise(const RunDescription& description, const RunLog& log, const Verdict& verdict);

/// Exactly the keys of RunSummary.
nlohmann::ordered_json to_json(const RunSummary& summary);
/// {"runs": […]}: what `orrery run --json` prints.
nlohmann::ordered_json to_json(std::span<const RunSummary> runs);

}  // namespace orrery::results
