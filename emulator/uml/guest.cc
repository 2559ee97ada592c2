#include "emulator/uml/guest.hh"

#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/c_strings.hh"
#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/uml/boot_file.hh"

namespace orrery::uml {
namespace {

// Host folders are handed over as open files, so that every path which the guest's kernel gets is
// of one length wherever they lie; a socket's path would be bounded, too.
constexpr int state_fd = 3;  // the folder of state
constexpr int init_fd = 4;   // the folder of our init
constexpr int first_folder_fd = 5;

std::string through(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

std::vector<std::string> kernel_line(const GuestSpec& spec) {
  std::vector<std::string> line{
      spec.kernel,
      "mem=" + std::to_string(spec.memory.count >> 20) + "M",
      "root=/dev/root",
      "rootfstype=hostfs",
      "rootflags=/",
      "ro",
      "init=" + through(init_fd) + "/" + std::filesystem::path(spec.init).filename().string(),
      "con=null",
      "con0=fd:0,fd:1",
      "ssl=null",
      "quiet",
      "time-travel=inf-cpu",
      "time-travel-start=1767225600000000000",  // ns: the guest's calendar is the same in each run
      "norandmaps",
      "orrery_entropy=" + std::to_string(spec.entropy),
      "uml_dir=" + through(state_fd),
      "umid=guest",
      "panic=-1",
      // A parameter that the kernel does not know: our init's environment.
      "orrery_boot=" + through(state_fd) + "/boot",
  };
  if (spec.yield_takes_time) line.emplace_back("orrery_yield");
  return line;
}

// In the child, between fork and exec: only what is safe there.
[[noreturn]] void become_guest(const std::vector<char*>& argv,
                               const std::vector<char*>& environment, int null_fd, int log_fd,
                               const std::vector<FileDescriptor>& folders, pid_t parent) {
  ::setpgid(0, 0);  // Ctrl-C goes to orrery, which ends the guest in order
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);  // orrery died before the line above
  // Kernel addresses would otherwise differ from run to run, and with them the order in hash
  // tables.
  ::personality(ADDR_NO_RANDOMIZE);
  // A limit on file size below mem= kills the guest without a word.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  ::dup2(null_fd, 0);
  ::dup2(log_fd, 1);
  ::dup2(log_fd, 2);
  int fd = state_fd;
  for (const FileDescriptor& folder : folders) ::dup2(folder.get(), fd++);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(126);
}

// Above all numbers that it may have in the guest.
FileDescriptor open_folder(const std::string& path) {
  const FileDescriptor low = open_file(path, O_PATH | O_DIRECTORY);
  FileDescriptor high(::fcntl(low.get(), F_DUPFD_CLOEXEC, 64));
  if (!high) throw_errno("open " + path);
  return high;
}

}  // namespace

bool is_guest_of(pid_t pid, const std::string& state_dir) {
  std::error_code gone;
  return std::filesystem::read_symlink(
             "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(state_fd), gone) ==
         std::filesystem::path(state_dir);
}

void remove_farewell(std::string& output) {
  for (const char* farewell : {"reboot: System halted", "reboot: Power down"})
    if (const std::size_t at = output.rfind(farewell); at != std::string::npos) output.resize(at);
}

std::string end_of_log(const std::string& path) {
  constexpr std::size_t limit = 1500;
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error&) {
    return "(no log)";
  }
  return text.size() <= limit ? text : "…" + text.substr(text.size() - limit);
}

std::string memory_folder(Bytes need, const std::string& fallback) {
  std::vector<std::string> candidates;
  if (const char* wish = std::getenv("TMPDIR"))
    candidates = {wish};  // who names a folder means it
  else
    candidates = {"/dev/shm", "/tmp", "/var/tmp", fallback};
  std::string lacks;
  for (const std::string& folder : candidates) {
    struct statvfs info {};
    std::string lack;
    if (::statvfs(folder.c_str(), &info) != 0)
      lack = "does not exist";
    else if (::access(folder.c_str(), W_OK | X_OK) != 0)
      lack = "is not writable";
    else if (info.f_flag & ST_NOEXEC)
      lack = "is mounted noexec";
    else if (static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) <
             static_cast<double>(need.count))
      lack = "has less than " + to_string(need) + " free";
    else
      return folder;
    lacks += (lacks.empty() ? "" : "; ") + folder + " " + lack;
  }
  throw MachineError("no folder can hold the guest's memory of " + to_string(need) + ": " + lacks +
                     "; set TMPDIR to one that can");
}

Guest::Guest(GuestSpec spec)
    : spec_(std::move(spec)),
      log_path_(spec_.state_dir + "/guest.log"),
      status_path_(spec_.state_dir + "/status") {
  std::filesystem::remove(status_path_);
  std::filesystem::remove_all(spec_.state_dir + "/guest");

  std::vector<FileDescriptor> folders;
  folders.push_back(open_folder(spec_.state_dir));
  folders.push_back(open_folder(std::filesystem::path(spec_.init).parent_path()));
  BootFile boot{spec_.writable, {{"state", through(state_fd)}},   spec_.environment,
                spec_.cwd,      folder_path("state") + "/status", spec_.argv};
  for (const Folder& folder : spec_.folders) {
    boot.folders.push_back(
        {folder.name, through(first_folder_fd + static_cast<int>(&folder - spec_.folders.data()))});
    folders.push_back(open_folder(folder.host));
  }
  write_file(spec_.state_dir + "/boot", to_text(boot));

  std::vector<std::string> line = kernel_line(spec_);
  std::vector<std::string> environment{"TMPDIR=" + memory_folder(spec_.memory, spec_.state_dir),
                                       "PATH=/usr/bin:/bin", "HOME=/"};
  const std::vector<char*> argv = c_strings(line);
  const std::vector<char*> env = c_strings(environment);
  const FileDescriptor null_fd = open_file("/dev/null", O_RDWR);
  const FileDescriptor log_fd = open_file(log_path_, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) become_guest(argv, env, null_fd.get(), log_fd.get(), folders, parent);
  write_file(spec_.state_dir + "/pid", std::to_string(pid_) + "\n");
}

Guest::~Guest() { kill(); }

std::optional<int> Guest::poll() {
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  if (ended < 0) throw_errno("wait for the guest");
  return finish();
}

int Guest::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) throw_errno("wait for the guest");
  return finish();
}

int Guest::finish() {
  pid_ = -1;
  remove_traces();
  std::ifstream file(status_path_);
  int status = 0;
  if (!(file >> status))
    throw Error("the time-travel kernel ended before its command did; the end of " + log_path_ +
                ":\n" + end_of_log(log_path_));
  return status;
}

void Guest::kill() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  remove_traces();
}

void Guest::remove_traces() const {
  std::error_code ignored;
  for (const char* name : {"/guest", "/pid"})
    std::filesystem::remove_all(spec_.state_dir + name, ignored);
}

double Guest::host_cpu_seconds() const {
  // The kernel process waits for (ptraces) each of its processes, so their time is added up in its
  // own /proc entry when they end, and is missing only while they live.
  double ticks = 0;
  try {
    const std::string text = read_file("/proc/" + std::to_string(pid_) + "/stat");
    const std::size_t after_name = text.rfind(')');
    std::size_t at = after_name;
    for (int field = 2; field <= 17; ++field) {
      at = text.find(' ', at + 1);
      if (at == std::string::npos) return 0;
      if (field >= 13) ticks += std::strtod(text.c_str() + at + 1, nullptr);
    }
  } catch (const Error&) {
    return 0;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace orrery::uml
