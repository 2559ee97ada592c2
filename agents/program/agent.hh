// One node's process: from its first word with the controller to its last.
#pragma once

#include <string>

#include "agents/data/dataset.hh"
#include "agents/kernels.hh"
#include "agents/run_spec.hh"

namespace orrery {

struct AgentSetup {
  const RunSpec& spec;
  const Dataset& data;
  Kernels& kernels;
  std::string control_socket;  ///< path of the controller's Unix socket
  std::string records_dir;     ///< its records go to RECORDS_DIR/node-RANK[-INCARNATION].bin
  /// Emulated time is the host's: the folder of core leases. Empty: time passes only while all
  /// sleep, and computing takes none.
  std::string leases;
};

/// Returns the process's exit status.
int run_agent(const AgentSetup& setup, int rank, int incarnation);

}  // namespace orrery
