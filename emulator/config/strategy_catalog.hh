// What the reader of an experiment must know of the strategies. It is handed in: strategies live
// with the agents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/option.hh"

namespace orrery::config {

/// What a strategy counts its progress in; `stop` and `evaluate` are in this unit.
enum class Progress { steps, evaluations };

struct StrategyInfo {
  std::string description;  ///< one line
  std::string paper;        ///< where it comes from
  std::vector<OptionSpec> options;
  Progress progress = Progress::steps;
  /// True: the model's layers are cut into stages, one a node. False: every node holds the model.
  bool staged = false;
  /// Names of text options that hold a node's name or its index.
  std::vector<std::string> node_options = {};
};

/// Ordered by name, so that everything made from it is repeatable.
using StrategyCatalog = std::map<std::string, StrategyInfo>;

}  // namespace orrery::config
