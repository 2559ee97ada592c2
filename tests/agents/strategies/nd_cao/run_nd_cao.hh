// A small nd_cao run in the simulated cluster: a toy net of four stages, changed as a test needs.
#pragma once

#include <string>

#include "agents/strategies/nd_cao/nd_cao.hh"
#include "tests/support/sim_cluster.hh"

namespace orrery::test {

struct ToyRun {
  explicit ToyRun(int nodes = 4, std::int64_t evaluations = 40);

  ToyRun& set(const std::string& name, OptionValue value);
  ToyRun& set(const std::string& name, const char* value) {
    return set(name, OptionValue(std::string(value)));
  }
  ToyRun& set(const std::string& name, int value) {
    return set(name, OptionValue(std::int64_t{value}));
  }
  /// Throws std::runtime_error at a deadlock.
  SimResult run() const;
  SimResult run_ok() const;  ///< and no node may fail
  std::int64_t parameter_count() const { return spec.workload.model.parameter_count(); }

  SimSpec spec;
};

/// The loss of a whole model, computed on one node from its flat parameters.
double whole_loss(const ToyRun& run, const std::vector<float>& parameters);

/// J of each evaluation, from the last node's rows.
std::vector<double> losses(const SimResult& result);

inline constexpr std::int64_t ms = 1'000'000;  ///< in ns

}  // namespace orrery::test
