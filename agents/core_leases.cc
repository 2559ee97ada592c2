#include "agents/core_leases.hh"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.hh"

namespace orrery {

CoreLeases::CoreLeases(const std::string& folder, int first) {
  // For all users of the host, as cores are: hence no umask, and no link followed.
  if (::mkdir(folder.c_str(), 0777) == 0)
    ::chmod(folder.c_str(), 01777);
  else if (errno != EEXIST)
    throw_errno("make the folder of core leases " + folder);
  check_system(::sched_getaffinity(0, sizeof all_, &all_), "ask for the cores");
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all_)) continue;
    const std::string path = folder + "/core" + std::to_string(core);
    // Reading is enough for a lock; another user's file stays his.
    FileDescriptor lock(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444));
    if (!lock) throw_errno("open the core lease " + path);
    cores_.push_back({core, std::move(lock)});
  }
  next_ = static_cast<std::size_t>(first) % cores_.size();
}

std::size_t CoreLeases::take() {
  // The core that it had last has its data in the cache.
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const std::size_t core = (next_ + i) % cores_.size();
    if (::flock(cores_[core].lock.get(), LOCK_EX | LOCK_NB) == 0) return core;
    if (errno != EWOULDBLOCK && errno != EINTR) throw_errno("lease a core");
  }
  while (::flock(cores_[next_].lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) throw_errno("lease a core");
  return next_;
}

void CoreLeases::run(const std::function<void()>& work) {
  struct Lease {
    CoreLeases& leases;
    const Core& core;
    ~Lease() {
      ::sched_setaffinity(0, sizeof leases.all_, &leases.all_);
      ::flock(core.lock.get(), LOCK_UN);
    }
  };
  next_ = take();
  const Lease lease{*this, cores_[next_]};
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(lease.core.number, &own);
  ::sched_setaffinity(0, sizeof own, &own);
  work();
}

}  // namespace orrery
