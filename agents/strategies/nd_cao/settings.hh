// The options of nd_cao, declared once and read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agents/strategies/nd_cao/block.hh"
#include "agents/strategy.hh"

namespace orrery::nd_cao {

enum class Mode { sync, async };
enum class Partition { layer, tensor, rows, chunks, random };

struct Settings {
  Mode mode = Mode::sync;
  int in_flight = 2;
  int staleness = 4;
  bool caching = true;
  bool balance_by_flops = true;
  Partition partition = Partition::layer;
  int blocks_per_node = 1;
  double step = 0;
  double step_end = 0.05;
  double last_step = 1;
  bool step_by_fan_in = true;
  int input_rank = 0;
  double input_whitening = 0;
  std::int64_t set_every = 0;
  std::int64_t budget = 0;  ///< evaluations over which the step decays; 0: it stays constant
  BlockSettings block;

  /// The step after `published` of `budget` evaluations: linear, never a function of time or of the
  /// number of own moves, so that a slow node takes the steps that a fast one takes.
  double step_after(std::int64_t published) const;
};

std::vector<OptionSpec> option_specs();

/// Throws PlacementError for values that cannot go together.
Settings read_settings(const Options& options, const StopRule& stop);

}  // namespace orrery::nd_cao
