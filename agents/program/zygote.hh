// The process from which agents are forked: it has loaded every library and the data set, and
// started no thread. A forked agent shares all of that memory and is ready in a fraction of the
// time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>

#include "base/fd.hh"

namespace orrery {

/// What the controller and the zygote tell each other, one datagram a message, over a SEQPACKET
/// socket. A Spawn carries a descriptor of the network namespace that the agent is to enter;
/// without one it stays where the zygote is.
struct ZygoteMessage {
  enum class Kind : int { spawn = 1, spawned = 2, exited = 3, ready = 4 };
  Kind kind = Kind::spawn;
  int rank = 0;
  int pid = 0;          ///< spawned, exited
  int status = 0;       ///< exited: as waitpid() gives it
  int incarnation = 0;  ///< spawn: 0 at first, then counts restarts
};

void send_message(int socket, const ZygoteMessage& message, int descriptor = -1);
/// Blocks. Returns false when the other end has closed. A descriptor that came along is put into
/// `descriptor` if that is given.
bool receive_message(int socket, ZygoteMessage& message, FileDescriptor* descriptor = nullptr);

class Zygote {
 public:
  /// `agent` runs in a forked child and returns its exit status.
  using Agent = std::function<int(int rank, int incarnation)>;

  Zygote(FileDescriptor socket, Agent agent);
  /// Serves until the controller closes the socket, then ends all children.
  int serve();

 private:
  void spawn(const ZygoteMessage& message, const FileDescriptor& network);
  void reap();

  FileDescriptor socket_;
  Agent agent_;
  std::map<pid_t, int> children_;  ///< pid → rank
};

}  // namespace orrery
