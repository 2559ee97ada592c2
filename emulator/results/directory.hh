// A run's directory. What is not in records.bin and run.json's own part is made from them, always
// again, byte for byte.
//
//   records.bin, run.json                       written by the run
//   steps.csv, links.csv, evaluations.csv, traffic.csv, events.jsonl, trace.json, report.html
#pragma once

#include <string>
#include <vector>

#include "emulator/results/description.hh"
#include "emulator/results/summary.hh"

namespace orrery::results {

/// Writes only run.json, without derived parts: before a run starts.
void write_description(const std::string& directory, const RunDescription& description);
RunDescription read_description(const std::string& directory);

/// Makes every derived file of one run again, run.json's verdict and summary included.
RunSummary write_results(const std::string& directory);

/// The same for each run's directory (in this order), then the comparison: report.html and
/// summary.json in `directory`.
std::vector<RunSummary> write_suite(const std::string& directory, const std::string& title,
                                    const std::vector<std::string>& run_directories);

}  // namespace orrery::results
