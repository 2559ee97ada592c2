// File systems: the host's, read-only and writable, memory, and the kernel's own.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "probe.hh"

namespace orrery::probe {
namespace {

const Registration hostfs_read{
    "hostfs_read", [] {
      // The host side names a file and compares what we saw in it.
      report("text", slurp(argument("probe_file")));
      expect(open("/probe-must-not-appear", O_CREAT | O_WRONLY, 0600) == -1 && errno == EROFS,
             "the host's root is read-only");
    }};

const Registration hostfs_write{
    "hostfs_write", [] {
      const std::string folder = argument("probe_dir");
      // The host's folder over itself, so that paths are the same inside and outside.
      check(mount("none", folder.c_str(), "hostfs", 0, folder.c_str()),
            "mount the folder writable");
      std::ofstream(folder + "/new") << "first line\n";
      std::ofstream(folder + "/new", std::ios::app) << "second line\n";
      check(mkdir((folder + "/made").c_str(), 0755), "mkdir");
      check(symlink("new", (folder + "/link").c_str()), "symlink");
      check(rename((folder + "/old").c_str(), (folder + "/made/moved").c_str()), "rename");
      check(unlink((folder + "/remove").c_str()), "unlink");
      const int fd = check(open((folder + "/mapped").c_str(), O_RDWR | O_CREAT, 0644), "open");
      check(ftruncate(fd, 8192), "ftruncate");
      auto* const p =
          static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
      check(reinterpret_cast<std::intptr_t>(p), "mmap");
      p[4096] = 'm';
      check(msync(p, 8192, MS_SYNC), "msync");
      check(fsync(fd), "fsync");
    }};

const Registration tmpfs{
    "tmpfs", [] {
      std::ofstream("/mnt/file") << std::string(100'000, 't');
      expect(slurp("/mnt/file") == std::string(100'000, 't'), "tmpfs keeps what is written");
      check(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0 || errno == ENOENT ? 0 : -1,
            "mount a small tmpfs");
    }};

const Registration config{
    "config", [] {
      report("on", std::stoll(run("zcat /proc/config.gz | grep -c =y")));
      // All options on, in one line, for the host side to compare with options.txt.
      report("options", run("zcat /proc/config.gz | sed -n 's/^CONFIG_\\([A-Z0-9_]*\\)=y$/\\1/p' | "
                            "tr '\\n' ' '"));
    }};

const Registration pseudo{
    "pseudo_files", [] {
      expect(slurp("/proc/sys/net/ipv4/tcp_congestion_control").find("cubic") == 0,
             "Cubic by default");
      expect(!slurp("/sys/kernel/uevent_seqnum").empty(), "sysfs is there");
      struct stat info {};
      check(stat("/dev/null", &info), "stat /dev/null");
      expect(S_ISCHR(info.st_mode), "devtmpfs has /dev/null");
      expect(access("/proc/sys/net/ipv6", F_OK) == -1,
             "no IPv6: its random timers make runs differ");
    }};

const Registration namespaces{
    "namespaces", [] {
      const pid_t user = check(fork(), "fork");
      if (user == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
      int status = -1;
      check(waitpid(user, &status, 0), "waitpid");
      expect(status == 0, "a user namespace can be made");
      check(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID),
            "unshare");
      check(sethostname("node-1", 6), "sethostname");
      const pid_t child = check(fork(), "fork");
      if (child == 0) _exit(getpid() == 1 ? 0 : 1);
      check(waitpid(child, &status, 0), "waitpid");
      expect(status == 0, "the child is process 1 of its namespace");
      check(mkdir("/mnt/cgroup", 0755), "mkdir");
      check(mount("none", "/mnt/cgroup", "cgroup2", 0, nullptr), "mount cgroup2");
    }};

}  // namespace
}  // namespace orrery::probe
