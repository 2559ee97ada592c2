#include "emulator/controller/launcher.hh"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agents/program/zygote.hh"
#include "base/c_strings.hh"
#include "base/error.hh"

namespace orrery::emulator {

ZygoteLauncher::ZygoteLauncher(std::vector<std::string> command, EventQueue& events)
    : events_(events) {
  int pair[2];
  check_system(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "make a socket pair");
  socket_.reset(pair[0]);
  FileDescriptor theirs(pair[1]);
  command.insert(command.end(), {"--fd", std::to_string(theirs.get())});
  const std::vector<char*> argv = c_strings(command);

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork the agents' parent process");
  if (pid_ == 0) {
    ::close(pair[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(125);
    ::execv(argv[0], argv.data());
    ::_exit(126);
  }
  theirs.reset();
  listener_ = std::thread([this] { listen(); });
}

ZygoteLauncher::~ZygoteLauncher() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  listener_.join();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void ZygoteLauncher::spawn(int rank, int incarnation, int network) {
  send_message(socket_.get(), {ZygoteMessage::Kind::spawn, rank, 0, 0, incarnation}, network);
}

void ZygoteLauncher::listen() {
  ZygoteMessage message;
  while (receive_message(socket_.get(), message)) {
    switch (message.kind) {
      case ZygoteMessage::Kind::ready:
        events_.push(ZygoteReady{});
        break;
      case ZygoteMessage::Kind::spawned:
        events_.push(AgentSpawned{message.rank, message.pid});
        break;
      case ZygoteMessage::Kind::exited:
        events_.push(AgentExited{message.rank, message.pid, message.status});
        break;
      case ZygoteMessage::Kind::spawn:
        break;
    }
  }
  events_.push(ZygoteGone{});
}

}  // namespace orrery::emulator
