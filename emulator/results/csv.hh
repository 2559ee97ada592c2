// The CSV files of a run directory. Each column is defined in docs/results.md.
#pragma once

#include <string>

#include "emulator/results/run_log.hh"

namespace orrery::results {

/// One row a record of the strategy's; the columns after `samples` are the strategy's own figures.
std::string steps_csv(const RunLog& log);
/// One row a property of a directed link (asked, applied, measured), with the link's last counters.
std::string links_csv(const RunLog& log);
/// One row an out-of-band evaluation.
std::string evaluations_csv(const RunLog& log);
/// One row a (sender, receiver, kind).
std::string traffic_csv(const RunLog& log);

}  // namespace orrery::results
