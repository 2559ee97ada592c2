// Runs of one experiment, several side by side on the host's processors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/config/experiment.hh"
#include "emulator/results/summary.hh"

namespace orrery::cli {

struct SuiteOptions {
  std::string directory;         ///< must not exist, or be empty
  std::string engine = "exact";  ///< or "live"
  std::string backend = "auto";  ///< of the live engine: "kernel", "fabric", "auto"
  std::vector<std::string> command_line;
  std::string metrics_address;  ///< empty: none
  int jobs = 0;                 ///< runs at a time; 0: one a processor; live runs: one in any case
  bool quiet = false;
  bool measure_links = false;  ///< also where an earlier run of the same plan measured them
  std::string profile_from;    ///< a run directory whose profile is used again; empty: none
};

struct SuiteOutcome {
  std::vector<results::RunSummary> runs;
  bool failed = false;
  bool interrupted = false;
};

/// Plans all runs, then runs them. Throws before anything is launched if one cannot be.
SuiteOutcome run_suite(const config::Experiment& experiment, const SuiteOptions& options);

}  // namespace orrery::cli
