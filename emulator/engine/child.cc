#include "emulator/engine/child.hh"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/c_strings.hh"
#include "base/error.hh"
#include "base/fd.hh"

namespace orrery::emulator {

Child::Child(ChildSpec spec) {
  const std::vector<char*> argv = c_strings(spec.argv);
  const std::vector<char*> environment = c_strings(spec.environment);
  const FileDescriptor null_fd = open_file("/dev/null", O_RDWR);
  const FileDescriptor log_fd = open_file(spec.log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ > 0) return;
  // Between fork and exec: system calls only.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);  // we died before the line above
  ::dup2(null_fd.get(), 0);
  ::dup2(log_fd.get(), 1);
  ::dup2(log_fd.get(), 2);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(126);
}

Child::~Child() { kill(); }

std::optional<int> Child::poll() {
  if (pid_ < 0) throw std::logic_error("poll() on a child that has ended");
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  if (ended < 0) throw_errno("wait for a program");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Child::kill() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // also before its setpgid()
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace orrery::emulator
