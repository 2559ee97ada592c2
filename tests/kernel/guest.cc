#include "guest.hh"

#include <fcntl.h>
#include <poll.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <system_error>

namespace orrery::kernel_test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string first_line_of(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw_errno("popen");
  std::array<char, 4096> line{};
  const bool any = std::fgets(line.data(), line.size(), pipe) != nullptr;
  pclose(pipe);
  std::string text = any ? line.data() : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Becomes the guest: its own process group, so that it can be ended with all its helpers, nothing
/// to read, and addresses that are the same in each run.
[[noreturn]] void become_guest(const std::vector<std::string>& line, int output) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(output, 2);
  personality(ADDR_NO_RANDOMIZE);
  std::vector<char*> argv;
  argv.reserve(line.size() + 1);
  for (const std::string& word : line) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

/// Reads all output until the guest closes it; false if `deadline` came first.
bool read_until(int fd, Clock::time_point deadline, std::string& output) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t size = ready < 0 ? -1 : read(fd, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw_errno("read the guest's output");
    if (size == 0) return true;
    output.append(part.data(), static_cast<std::size_t>(size));
  }
}

void parse(Outcome& outcome) {
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "RESULT") {
      std::getline(words >> std::ws, outcome.result);
    } else if (kind == "VALUE") {
      std::string key;
      words >> key;
      std::getline(words >> std::ws, outcome.values[key]);
    }
  }
}

}  // namespace

std::int64_t Outcome::number(const std::string& key) const { return std::stoll(values.at(key)); }

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "orrery-kernel.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw_errno("mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path kernel_path() {
  if (const char* named = std::getenv("ORRERY_KERNEL"); named != nullptr) return named;
  if (std::string(ORRERY_KERNEL) != "") return ORRERY_KERNEL;
  const std::filesystem::path cached =
      first_line_of(std::string("'") + ORRERY_BUILD_KERNEL + "' --print-path");
  return std::filesystem::exists(cached) ? cached : "";
}

namespace {

/// A guest that has just been started, and what it prints.
struct Started {
  pid_t pid;
  int output;
};

Started start(const std::string& check, const std::vector<std::string>& arguments,
              const std::filesystem::path& folder) {
  std::vector<std::string> line{kernel_path().string(),
                                "mem=512M",
                                "root=/dev/root",
                                "rootfstype=hostfs",
                                "rootflags=/",
                                "ro",
                                std::string("init=") + ORRERY_KERNEL_PROBE,
                                "con=null",
                                "con0=fd:0,fd:1",
                                "quiet",
                                "time-travel=inf-cpu",
                                "norandmaps",
                                "uml_dir=" + folder.string(),
                                "probe=" + check};
  line.insert(line.end(), arguments.begin(), arguments.end());
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  const pid_t guest = fork();
  if (guest < 0) throw_errno("fork");
  if (guest == 0) become_guest(line, ends[1]);
  close(ends[1]);
  return {guest, ends[0]};
}

int processes_of(pid_t group) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        getpgid(std::stoi(name)) == group)
      ++count;
  }
  return count;
}

}  // namespace

int left_after_a_kill(const std::string& check) {
  const TemporaryFolder folder;
  const Started guest = start(check, {}, folder.path());
  Outcome outcome;
  const auto limit = Clock::now() + std::chrono::seconds{60};
  while (outcome.values.empty() && Clock::now() < limit) {
    if (read_until(guest.output, Clock::now() + std::chrono::milliseconds{100}, outcome.output))
      break;
    parse(outcome);
  }
  kill(guest.pid, SIGKILL);
  waitpid(guest.pid, nullptr, 0);
  int left = processes_of(guest.pid);
  for (int i = 0; i < 50 && left > 0; ++i) {
    usleep(100'000);
    left = processes_of(guest.pid);
  }
  kill(-guest.pid, SIGKILL);
  close(guest.output);
  return outcome.values.empty() ? -1 : left;
}

Outcome boot(const std::string& check, const std::vector<std::string>& arguments,
             std::chrono::seconds limit) {
  const TemporaryFolder folder;
  const auto begun = Clock::now();
  const Started running = start(check, arguments, folder.path());

  Outcome outcome;
  const bool ended = read_until(running.output, begun + limit, outcome.output);
  if (!ended) {
    kill(-running.pid, SIGKILL);
    outcome.output += "\n(killed: it took longer than it may)\n";
  }
  int status = 0;
  waitpid(running.pid, &status, 0);
  close(running.output);
  outcome.host_time = Clock::now() - begun;
  outcome.exited_cleanly = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ended && !outcome.exited_cleanly) {
    outcome.output += WIFSIGNALED(status)
                          ? "\n(ended by signal " + std::to_string(WTERMSIG(status)) + ")\n"
                          : "\n(ended with code " + std::to_string(WEXITSTATUS(status)) + ")\n";
  }
  parse(outcome);
  return outcome;
}

}  // namespace orrery::kernel_test
