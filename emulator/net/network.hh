// A network file, read and planned.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/experiment.hh"
#include "emulator/plan/timeline.hh"
#include "netshape/plan.hh"

namespace orrery::net {

struct Network {
  config::Experiment file;  ///< its nodes, links and seed
  netshape::Plan plan;
  std::vector<emulator::TimedAction> timeline;  ///< changes of links
};

/// Throws InvalidFile with every error at once. Warnings go to standard error.
Network load(const std::string& path);

}  // namespace orrery::net
