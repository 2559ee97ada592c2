// What the report's script draws, as JSON. Times are seconds; figures that are not finite are null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "emulator/results/report.hh"

namespace orrery::results {

nlohmann::ordered_json report_data(const std::string& title, std::span<const RunView> runs,
                                   const ReportLimits& limits);

}  // namespace orrery::results
