// What both halves of `netshape` work with: the plan of a file, and what happens to it when.
#pragma once

#include <string>
#include <vector>

#include "emulator/plan/timeline.hh"
#include "netshape/plan.hh"

namespace orrery::net {

struct Network {
  netshape::Plan plan;
  std::vector<emulator::TimedAction> timeline;  ///< of links only
};

/// From a network file or an experiment. Throws InvalidFile or ValueError with what would be right.
Network load(const std::string& path);

}  // namespace orrery::net
