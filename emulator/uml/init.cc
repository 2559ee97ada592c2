// orrery-init: process 1 of the time-travel kernel. It mounts what programs expect, runs one
// command, reaps whatever is orphaned, writes the command's exit status, and powers the guest off.
//
// Linked statically: a dynamic loader costs page faults, and they are dear in a guest.

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/uml/boot_file.hh"

namespace {

using orrery::throw_errno;

// Some programs take a clock that reads (almost) zero for "never".
constexpr timespec settle{2, 0};

void mount_over(const char* type, const std::string& where, const char* data) {
  if (::mount("none", where.c_str(), type, 0, data) != 0)
    throw_errno(std::string("mount ") + type + " on " + where);
}

// Several libraries look for the rate of the time-stamp counter. Where they find none, they
// measure: they compare a clock with a counter that runs on the host's time. In virtual time that
// never agrees, takes the longer the less it does, and differs from run to run.
void name_counter_rate() {
  // Abseil (and with it gRPC); it would sleep some 250 ms, holding a lock.
  const std::string cpus = "/sys/devices/system/cpu";
  mount_over("tmpfs", cpus, nullptr);
  for (const char* list : {"online", "possible", "present"})
    orrery::write_file(cpus + "/" + list, "0\n");
  if (::mkdir((cpus + "/cpu0").c_str(), 0755) != 0) throw_errno("make a folder in " + cpus);
  orrery::write_file(cpus + "/cpu0/tsc_freq_khz", "1000000\n");

  // UCX and PSM2, which come with Debian 13's libtorch by way of Open MPI. They measure on being
  // loaded; UCX until the figures converge.
  std::string text = orrery::read_file("/proc/cpuinfo");
  const std::string model = "model name\t: UML";
  const std::size_t at = text.find(model);
  if (at == std::string::npos) return;
  text.replace(at, model.size(), model + " @ 1.00GHz\ncpu MHz\t\t: 1000.000");
  orrery::write_file(cpus + "/cpu0/cpuinfo", text);
  if (::mount((cpus + "/cpu0/cpuinfo").c_str(), "/proc/cpuinfo", nullptr, MS_BIND, nullptr) != 0)
    throw_errno("mount over /proc/cpuinfo");
}

void mount_folders(const std::vector<orrery::uml::Folder>& folders) {
  const auto make = [](const std::string& path) {
    if (::mkdir(path.c_str(), 0755) != 0) throw_errno("make " + path);
  };
  mount_over("tmpfs", "/proc/fs", nullptr);
  make(orrery::uml::folder_path(""));
  for (const orrery::uml::Folder& folder : folders) {
    const std::string path = orrery::uml::folder_path(folder.name);
    make(path);
    mount_over("hostfs", path, folder.host.c_str());
  }
}

void loopback_up() {
  const orrery::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) throw_errno("bring up lo");
}

// TCP's share of memory over all connections is a ninth or so by default, and a long fat path asks
// for more: the kernel would clamp its windows. What each may use, its own buffers bound.
void let_tcp_use_memory() {
  const std::string pages = std::to_string(::sysconf(_SC_PHYS_PAGES));
  orrery::write_all(orrery::open_file("/proc/sys/net/ipv4/tcp_mem", O_WRONLY).get(),
                    pages + " " + pages + " " + pages + "\n", "set tcp_mem");
}

pid_t spawn(const orrery::uml::BootFile& boot) {
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child > 0) return child;
  ::clearenv();
  for (const std::string& entry : boot.environment) ::putenv(::strdup(entry.c_str()));
  if (!boot.cwd.empty() && ::chdir(boot.cwd.c_str()) != 0) {
    std::perror(("cannot enter " + boot.cwd).c_str());
    ::_exit(127);
  }
  std::vector<char*> argv;
  for (const std::string& argument : boot.argv) argv.push_back(::strdup(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  std::perror(("cannot run " + boot.argv[0]).c_str());
  ::_exit(127);
}

int reap_until(pid_t child) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::wait(&status);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) throw_errno("wait");
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

int run(const char* boot_path) {
  const auto boot = orrery::uml::parse_boot_file(orrery::read_file(boot_path));
  mount_over("proc", "/proc", nullptr);
  mount_over("sysfs", "/sys", nullptr);
  name_counter_rate();
  for (const std::string& dir : boot.writable) mount_over("hostfs", dir, dir.c_str());
  mount_folders(boot.folders);
  loopback_up();
  let_tcp_use_memory();
  ::nanosleep(&settle, nullptr);
  const int status = boot.argv.empty() ? 0 : reap_until(spawn(boot));
  if (!boot.status.empty()) orrery::write_file(boot.status, std::to_string(status) + "\n");
  return status;
}

}  // namespace

int main() {
  const char* boot_path = std::getenv("orrery_boot");
  if (::getpid() != 1 || !boot_path) {
    std::fputs("orrery-init is process 1 of the exact engine's kernel; start `orrery` instead\n",
               stderr);
    return 2;
  }
  try {
    run(boot_path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "orrery-init: %s\n", error.what());
  }
  ::sync();
  ::reboot(RB_POWER_OFF);
  return 1;
}
