// A network that is up in this process: its backend, where commands find its nodes, its timeline.
#pragma once

#include <memory>
#include <string>

#include "emulator/net/network.hh"
#include "netshape/backend.hh"

namespace orrery::net {

/// Environment variable: the folder that holds a mount of each node's network namespace.
inline constexpr const char* namespaces_variable = "NETSHAPE_NODES";

/// Builds it with "kernel", "fabric" or, for "auto", what the kernel we are in can do; as an
/// ordinary user in a user namespace, which this process moves into.
std::unique_ptr<netshape::Backend> build(const Network& network, const std::string& backend);

/// Where commands find the nodes: namespaces as files, addresses as a hosts file. In a mount
/// namespace that this process moves into, so nothing is seen outside and nothing stays.
class Directory {
 public:
  explicit Directory(const netshape::Backend& network);
  const std::string& path() const { return folder_; }

 private:
  std::string folder_ = "/proc/fs/netshape";
};

/// Changes links at their instants, counted from its making, until it goes.
class Timeline {
 public:
  Timeline(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

 private:
  struct Player;
  std::unique_ptr<Player> player_;
};

/// Moves this process onto a node, whose namespace `folder` holds. Throws Error that names those
/// there are.
void enter_node(const std::string& folder, const std::string& node);

/// Replaces this process by a command.
[[noreturn]] void become(const std::vector<std::string>& command);

}  // namespace orrery::net
