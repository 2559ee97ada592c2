#include "netshape/namespace.hh"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

constexpr const char* current_path = "/proc/thread-self/ns/net";

}  // namespace

FileDescriptor InNamespace::current() {
  const int fd = ::open(current_path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT)
    throw MachineError(std::string(current_path) +
                       " is missing; mount proc on /proc, in a kernel with CONFIG_NET_NS");
  if (fd < 0) throw_errno(std::string("open ") + current_path);
  return FileDescriptor(fd);
}

InNamespace::InNamespace(int descriptor) : before_(current()) {
  check_system(setns(descriptor, CLONE_NEWNET), "enter a network namespace");
}

InNamespace::InNamespace(MakeTag) : before_(current()) {
  if (unshare(CLONE_NEWNET) == 0) return;
  if (errno == EPERM)
    throw MachineError(
        "make a network namespace: not permitted; run as root, with CAP_SYS_ADMIN, or inside a "
        "user namespace");
  if (errno == EINVAL || errno == ENOSYS)
    throw MachineError("make a network namespace: the kernel cannot; it needs CONFIG_NET_NS");
  throw_errno("make a network namespace");
}

InNamespace InNamespace::make() { return InNamespace(MakeTag{}); }

InNamespace::~InNamespace() {
  if (!before_ || setns(before_.get(), CLONE_NEWNET) == 0) return;
  std::perror("return to the network namespace that this thread came from");
  std::abort();
}

bool write_setting(const std::string& name, const std::string& value) {
  const std::string path = "/proc/sys/net/" + name;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return false;
  if (!file && (errno == EROFS || errno == EACCES))
    throw MachineError(path + " cannot be written; mount proc on /proc for writing");
  if (!file) throw_errno("open " + path);
  write_all(file.get(), value, path);
  return true;
}

}  // namespace orrery::netshape
