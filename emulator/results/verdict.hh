// Fidelity is a result: whether a run may be believed, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/results/description.hh"
#include "emulator/results/run_log.hh"

namespace orrery::results {

enum class Grade { faithful, degraded, invalid };
const char* to_string(Grade grade);

/// Something that was looked at. `effect` is the best grade that it leaves; `faithful` is a remark.
struct Finding {
  Grade effect = Grade::faithful;
  std::string figure;           ///< what was looked at: "uncharged_ratio", "link rate", …
  std::string text;             ///< one sentence, figures and limit included
  std::optional<double> value;  ///< in the figure's own unit, if it is a number
  std::optional<double> limit;
};

struct Verdict {
  Grade grade = Grade::faithful;
  std::vector<Finding> findings;         ///< worst first; never empty
  std::vector<std::string> assumptions;  ///< what the figures rest on; never empty
  /// The largest |measured − asked| / asked of any link property that was measured: what
  /// `--require-fidelity` compares. None: nothing was measured.
  std::optional<double> worst_link_error;

  /// The findings that are not mere remarks.
  std::vector<std::string> reasons() const;
};

Verdict judge(const RunDescription& description, const RunLog& log);

nlohmann::json to_json(const Verdict& verdict);

/// Charged and uncharged host cycles of all nodes → uncharged / all; none if nothing was counted.
std::optional<double> uncharged_ratio(const RunLog& log);

}  // namespace orrery::results
