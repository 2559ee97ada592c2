// The half of `netshape` that builds a network: in the time-travel kernel, or wherever the kernel
// has netem and this process may make namespaces.
#pragma once

#include <string>
#include <vector>

#include "emulator/net/network.hh"

namespace orrery::net {

/// Builds it, measures every link, prints a row a property. 0 if all is as asked, else 1.
int verify_here(const Network& network);

/// Builds it, runs a command beside it (or on a node, if one is named) while the timeline goes on,
/// takes it down. Commands below it reach nodes by `netshape exec NODE -- COMMAND`, and by name in
/// their addresses. Returns the command's exit status, 128 + signal if one ended it.
/// `scratch`: with empty folders to write to (see scratch.hh), but for `keep`.
int run_here(const Network& network, const std::string& node,
             const std::vector<std::string>& command, bool scratch,
             const std::vector<std::string>& keep);

/// Becomes a command on a node of the network that run_here() has built. Returns only by throwing.
[[noreturn]] void exec_on(const std::string& node, const std::vector<std::string>& command);

}  // namespace orrery::net
