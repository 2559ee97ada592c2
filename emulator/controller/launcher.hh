// Agents as forks of one loaded process, each in its node's network namespace.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "base/fd.hh"
#include "emulator/controller/control_server.hh"

namespace orrery::emulator {

class ZygoteLauncher {
 public:
  /// Starts `command` (orrery-agent zygote …, to which "--fd N" is added); its messages become
  /// events.
  ZygoteLauncher(std::vector<std::string> command, EventQueue& events);
  /// Ends it and all of its agents.
  ~ZygoteLauncher();

  /// Asks for an agent in the network namespace of descriptor `network`.
  void spawn(int rank, int incarnation, int network);

 private:
  void listen();

  EventQueue& events_;
  FileDescriptor socket_;
  pid_t pid_ = -1;
  std::thread listener_;
};

}  // namespace orrery::emulator
