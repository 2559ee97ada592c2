#include "emulator/engine/host.hh"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agents/profile.hh"
#include "base/c_strings.hh"
#include "base/error.hh"
#include "base/fd.hh"

namespace orrery::emulator {
namespace {

namespace fs = std::filesystem;

std::string build_script() {
  const fs::path here = program_folder();
  // Installed; or in a build tree, where the project's root is some folders up.
  const fs::path installed = here / ".." / "share" / "orrery" / "scripts" / "build-kernel.sh";
  if (fs::exists(installed)) return installed;
  for (fs::path folder = here; folder != folder.root_path(); folder = folder.parent_path())
    if (fs::exists(folder / "scripts" / "build-kernel.sh"))
      return folder / "scripts" / "build-kernel.sh";
  throw MachineError(
      "scripts/build-kernel.sh is not to be found beside this program; set "
      "ORRERY_KERNEL to a time-travel kernel");
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

// Spawns with stdout and stderr going to files or, where the path is empty, to ours.
int spawn_and_wait(std::vector<std::string> argv, std::vector<std::string> environment,
                   const std::string& out_path, const std::string& error_path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (!out_path.empty())
    posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  if (!error_path.empty())
    posix_spawn_file_actions_addopen(&actions, 2, error_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, argv[0].c_str(), &actions, nullptr,
                                    c_strings(argv).data(), c_strings(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw SystemError("start " + argv[0], failure);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) throw_errno("wait for " + argv[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
  return environment;
}

// A pair of files that disappear with it.
class Capture {
 public:
  Capture() {
    char pattern[] = "/tmp/orrery-XXXXXX";
    if (!::mkdtemp(pattern)) throw_errno("make a temporary folder");
    folder_ = pattern;
  }
  ~Capture() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  std::string out() const { return folder_ + "/out"; }
  std::string errors() const { return folder_ + "/err"; }

 private:
  std::string folder_;
};

}  // namespace

std::string program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

std::string sibling_program(const std::string& name) {
  const std::string path = fs::path(program_folder()) / name;
  if (::access(path.c_str(), X_OK) != 0)
    throw MachineError(name + " is not beside this program (" + path + "); install Orrery whole");
  return path;
}

std::string built_kernel() {
  if (const char* wish = std::getenv("ORRERY_KERNEL")) return wish;
  const Capture capture;
  const int status = spawn_and_wait({build_script(), "--print-path"}, own_environment(),
                                    capture.out(), "/dev/null");
  const std::string path = last_line(read_file(capture.out()));
  return status == 0 && ::access(path.c_str(), X_OK) == 0 ? path : "";
}

std::string find_kernel() {
  if (const char* wish = std::getenv("ORRERY_KERNEL")) {
    if (::access(wish, X_OK) != 0)
      throw MachineError("ORRERY_KERNEL is " + std::string(wish) +
                         ", which cannot be executed; unset it to use Orrery's own");
    return wish;
  }
  if (std::string path = built_kernel(); !path.empty()) return path;
  const Capture capture;
  const int status = spawn_and_wait({build_script()}, own_environment(), capture.out(), "");
  if (status != 0) throw MachineError("the time-travel kernel could not be built; see above");
  return last_line(read_file(capture.out()));
}

std::vector<std::string> compute_environment() {
  std::vector<std::string> environment{
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOME=/",
      "LANG=C.UTF-8",
      "OMP_NUM_THREADS=1",
      "OPENBLAS_NUM_THREADS=1",
      "GRPC_VERBOSITY=ERROR",
      // gRPC wakes for what it can use, not for each packet: the same arrivals at a sixth of the
      // cost.
      "GRPC_EXPERIMENTS=tcp_frame_size_tuning,tcp_rcv_lowat",
      // Debian 13's libtorch brings Open MPI and so UCX, which on being loaded patches the C
      // library's memory functions and waits in between with its eyes on the clock: in a guest
      // seven times the work of loading libtorch.
      "UCX_MEM_MMAP_HOOK_MODE=none",
      "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold="
      "8589934592:"
      "glibc.malloc.top_pad=16777216:glibc.malloc.arena_max=1",
  };
  // Which code OpenBLAS and oneDNN choose changes the last digits: what the user fixed stays fixed.
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "DNNL_MAX_CPU_ISA", "TZ"})
    if (const char* value = std::getenv(name))
      environment.push_back(std::string(name) + "=" + value);
  return environment;
}

std::string cache_folder() {
  if (const char* wish = std::getenv("ORRERY_CACHE")) return wish;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) return std::string(xdg) + "/orrery";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "/tmp") + "/.cache/orrery";
}

std::string lease_folder() {
  if (const char* wish = std::getenv("ORRERY_LEASES")) return wish;
  return "/tmp/orrery-cores";
}

Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:"))
      return {std::strtoll(line.c_str() + 13, nullptr, 10) * 1024};
  return {0};
}

int processor_count() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return 1;
}

std::string processor_name() { return cpu_name(); }

std::string system_name() {
  utsname info{};
  ::uname(&info);
  std::string name = std::string(info.sysname) + " " + info.release;
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("PRETTY_NAME=\"")) name += ", " + line.substr(13, line.size() - 14);
  return name;
}

Finished run_program(const std::vector<std::string>& argv) {
  const Capture capture;
  Finished finished;
  finished.status = spawn_and_wait(argv, compute_environment(), capture.out(), capture.errors());
  finished.output = read_file(capture.out());
  finished.errors = read_file(capture.errors());
  return finished;
}

}  // namespace orrery::emulator
