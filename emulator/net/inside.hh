// The half of `netshape` that builds a network: in the time-travel kernel, or on the host.
#pragma once

#include <string>
#include <vector>

#include "emulator/net/network.hh"

namespace orrery::net {

/// Builds it, measures every link, prints a row a property. 0 if all is as asked, else 1.
/// `backend`: "kernel", "fabric", or "auto" for what the kernel we are in can do. As an ordinary
/// user, in a user namespace.
int verify_here(const Network& network, const std::string& backend);

/// Builds it, runs a command beside it (or on a node, if one is named) while the timeline goes on,
/// takes it down. Commands below it reach nodes by `netshape exec NODE -- COMMAND`, and by name in
/// their addresses. Returns the command's exit status, 128 + signal if one ended it.
struct HereOptions {
  std::string backend = "auto";
  std::string node;      ///< where the command runs; empty: beside the network
  bool scratch = false;  ///< with empty folders to write to (see scratch.hh), but for `keep`
  std::vector<std::string> keep;
};
int run_here(const Network& network, const std::vector<std::string>& command,
             const HereOptions& options);

}  // namespace orrery::net
