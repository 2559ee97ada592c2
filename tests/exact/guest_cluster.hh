// A cluster inside the time-travel kernel, without the product's controller: a star of nodes, each
// a process in its own namespace with the real transport, whose kernels take times that a test
// chose.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agents/data/dataset.hh"
#include "agents/device.hh"
#include "agents/node.hh"
#include "agents/strategy.hh"
#include "netshape/topology.hh"
#include "tests/support/sim_cluster.hh"

namespace orrery::test {

struct GuestCluster {
  std::vector<netshape::StarNode> nodes;                     ///< by rank, with their links
  std::vector<std::shared_ptr<const CostModel>> costs = {};  ///< by rank; missing: all is free
  std::vector<SpeedSchedule> schedules = {};                 ///< by rank; missing: always 1
  Placement placement = {};                                  ///< sends_to says who connects to whom
  WorkloadView workload = {};
  Options options = {};
  StopRule stop = {};
  const Dataset* data = nullptr;
};

/// What a node does from time zero on, which is one instant for all of them. Its output is the
/// program's: a line a printf(), which the processes share.
using NodeBody = std::function<void(Node&, VectorSink&)>;

/// Runs `body` on every node. False if one of them ended with an error, which has been printed.
bool run_in_guest(const GuestCluster& cluster, const NodeBody& body);

/// Prints a whole line at once, and flushes it.
void print_line(const std::string& line);

}  // namespace orrery::test
