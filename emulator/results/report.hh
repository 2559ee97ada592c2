// report.html: one self-contained page for a run or a suite.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "emulator/results/description.hh"
#include "emulator/results/run_log.hh"

namespace orrery::results {

/// A run as the report takes it: nothing owned.
struct RunView {
  const RunDescription* description = nullptr;
  const RunLog* log = nullptr;
};

struct ReportLimits {
  std::size_t curve_points = 2000;  ///< a curve
  std::size_t spans = 3000;         ///< a run, the earliest
};

/// The page opens offline and asks for nothing from any network.
std::string report_html(const std::string& title, std::span<const RunView> runs,
                        const ReportLimits& limits = {});

}  // namespace orrery::results
