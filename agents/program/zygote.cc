#include "agents/program/zygote.hh"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.hh"

namespace orrery {

void send_message(int socket, const ZygoteMessage& message, int descriptor) {
  iovec part{const_cast<ZygoteMessage*>(&message), sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
    throw_errno("talk to the agents' parent process");
}

bool receive_message(int socket, ZygoteMessage& message, FileDescriptor* descriptor) {
  iovec part{&message, sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t n;
  do n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n == 0 || (n < 0 && errno == ECONNRESET)) return false;
  if (n < 0) throw_errno("hear from the agents' parent process");
  if (n != sizeof message) throw Error("a message between controller and agents is cut off");
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); rights && rights->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    FileDescriptor received(fd);
    if (descriptor) *descriptor = std::move(received);
  }
  return true;
}

Zygote::Zygote(FileDescriptor socket, Agent agent)
    : socket_(std::move(socket)), agent_(std::move(agent)) {}

void Zygote::spawn(const ZygoteMessage& message, const FileDescriptor& network) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork an agent");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(125);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    socket_.reset();
    if (network && ::setns(network.get(), CLONE_NEWNET) != 0) {
      std::perror("enter the node's network");
      ::_exit(125);
    }
    const int status = agent_(message.rank, message.incarnation);
    std::fflush(nullptr);
    // Libraries' own clean-up has nothing to save, and costs page faults.
    ::_exit(status);
  }
  children_[child] = message.rank;
  send_message(socket_.get(),
               {ZygoteMessage::Kind::spawned, message.rank, child, 0, message.incarnation});
}

void Zygote::reap() {
  int status = 0;
  for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto child = children_.find(ended);
    if (child == children_.end()) continue;
    send_message(socket_.get(), {ZygoteMessage::Kind::exited, child->second, ended, status, 0});
    children_.erase(child);
  }
}

int Zygote::serve() {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  const FileDescriptor signals(
      check_system(::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK), "make a signalfd"));

  send_message(socket_.get(), {ZygoteMessage::Kind::ready, 0, ::getpid(), 0, 0});
  for (;;) {
    pollfd waits[2] = {{socket_.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) throw_errno("wait for the controller");
    if (waits[1].revents) {
      signalfd_siginfo info;
      while (::read(signals.get(), &info, sizeof info) > 0) {
      }
      reap();
    }
    if (waits[0].revents) {
      ZygoteMessage message;
      FileDescriptor network;
      if (!receive_message(socket_.get(), message, &network)) break;
      if (message.kind == ZygoteMessage::Kind::spawn) spawn(message, network);
    }
  }
  for (const auto& [pid, rank] : children_) ::kill(pid, SIGKILL);
  return 0;
}

}  // namespace orrery
