#include "netshape/user_namespace.hh"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

void write_map(const char* path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text << std::flush))
    throw MachineError(std::string("enter a user namespace: ") + path +
                       " cannot be written; run as root, or allow unprivileged user namespaces");
}

}  // namespace

bool may_make_namespaces() {
  // Asked of the kernel itself, in a child that ends at once: capabilities do not tell all (a
  // seccomp filter, a security module).
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) ::_exit(::unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw_errno("wait for a child");
  return status == 0;
}

bool enter_user_namespace() {
  if (may_make_namespaces()) return false;
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  // A network namespace with it, for one may not come back to one that is someone else's.
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    throw MachineError(
        "enter a user namespace: not permitted; run as root, or allow unprivileged user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces)");
  write_map("/proc/self/uid_map", "0 " + user + " 1\n");
  write_map("/proc/self/setgroups", "deny");
  write_map("/proc/self/gid_map", "0 " + group + " 1\n");
  return true;
}

}  // namespace orrery::netshape
