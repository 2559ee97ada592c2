#include "emulator/net/outside.hh"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/engine/host.hh"
#include "emulator/uml/guest.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;

volatile sig_atomic_t interrupted = 0;

// A folder of /tmp that goes when it does.
class Scratch {
 public:
  Scratch() {
    char pattern[] = "/tmp/netshape-XXXXXX";
    if (!::mkdtemp(pattern)) throw_errno("make a temporary folder");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Passes on what a growing log holds: without a terminal's carriage returns, and without the
// kernel's farewell.
class LogFollower {
 public:
  explicit LogFollower(const std::string& path) : file_(open_file(path, O_RDONLY)) {}

  void follow(bool to_the_end) {
    std::array<char, 65536> part{};
    for (ssize_t n = 0; (n = ::read(file_.get(), part.data(), part.size())) > 0;)
      for (const char c : std::string_view(part.data(), static_cast<std::size_t>(n)))
        if (c != '\r') pending_ += c;
    uml::remove_farewell(pending_);
    // Whole lines only, for a farewell must not be cut in two.
    const std::size_t end = to_the_end ? pending_.size() : pending_.rfind('\n') + 1;
    std::cout << pending_.substr(0, end) << std::flush;
    pending_.erase(0, end);
  }

 private:
  FileDescriptor file_;
  std::string pending_;
};

}  // namespace

int run_in_guest(const std::vector<std::string>& arguments, const GuestOptions& options) {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);

  const Scratch scratch;
  uml::GuestSpec spec;
  spec.kernel = emulator::find_kernel();
  spec.init = emulator::sibling_program("orrery-init");
  spec.memory = parse_bytes(options.memory);
  spec.state_dir = scratch.path();
  for (const std::string& folder : options.writable) {
    if (!fs::is_directory(folder))
      throw Error(folder + " is not a folder; name one that is there", ExitCode::usage);
    spec.writable.push_back(fs::absolute(folder).lexically_normal());
  }
  spec.folders = {{"programs", emulator::program_folder()}};
  spec.cwd = fs::current_path();
  spec.yield_takes_time = true;
  spec.argv = {uml::folder_path("programs") + "/netshape"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  for (char** entry = environ; *entry; ++entry) spec.environment.emplace_back(*entry);
  uml::Guest guest(spec);
  LogFollower log(guest.log_path());
  for (;;) {
    const std::optional<int> status = guest.poll();
    log.follow(status.has_value());
    if (status) return *status;
    if (interrupted) {
      guest.kill();
      log.follow(true);
      return static_cast<int>(ExitCode::interrupted);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace orrery::net
