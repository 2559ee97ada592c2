#include "emulator/net/inside.hh"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include "base/c_strings.hh"
#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/controller/controller.hh"
#include "emulator/net/scratch.hh"
#include "netshape/open_backend.hh"
#include "netshape/user_namespace.hh"
#include "netshape/verify.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;

// Names the folder that holds a mount of each node's network namespace.
constexpr const char* namespaces_variable = "NETSHAPE_NODES";

Instant now() { return {emulator::monotonic_ns()}; }

// Where commands find the nodes: namespaces as files, addresses as a hosts file. In a mount
// namespace of its own, so nothing is seen outside and nothing stays.
class Directory {
 public:
  explicit Directory(const netshape::Backend& network) {
    check_system(::unshare(CLONE_NEWNS), "make a mount namespace");
    check_system(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
                 "make mounts private");
    // /proc/fs is empty, and nobody's files lie below it. In the time-travel kernel our init has
    // put a folder there already.
    std::error_code failed;
    if (!fs::create_directory(folder_, failed)) {
      check_system(::mount("none", "/proc/fs", "tmpfs", 0, nullptr),
                   "mount a folder for the nodes");
      fs::create_directory(folder_);
    }
    std::string hosts = "127.0.0.1 localhost\n";
    for (const netshape::VertexPlan& vertex : network.current().vertices) {
      hosts += vertex.address + " " + vertex.name + "\n";
      const std::string file = folder_ + "/" + vertex.name;
      write_file(file, "");
      const std::string held =
          "/proc/self/fd/" + std::to_string(network.node_namespace(vertex.name));
      check_system(::mount(held.c_str(), file.c_str(), nullptr, MS_BIND, nullptr),
                   ("name the namespace of " + vertex.name).c_str());
    }
    write_file("/proc/fs/hosts", hosts);
    if (!fs::exists("/etc/hosts")) make_room_in_etc();
    check_system(::mount("/proc/fs/hosts", "/etc/hosts", nullptr, MS_BIND, nullptr),
                 "mount the nodes' addresses over /etc/hosts");
  }
  const std::string& path() const { return folder_; }

 private:
  // A root made for containers may lack the file, and is read-only here: an /etc of our own whose
  // entries lead to those of the old one.
  static void make_room_in_etc() {
    const std::string old = "/proc/fs/etc";
    fs::create_directory(old);
    check_system(::mount("/etc", old.c_str(), nullptr, MS_BIND, nullptr), "hold /etc");
    check_system(::mount("none", "/etc", "tmpfs", 0, nullptr), "mount over /etc");
    for (const auto& entry : fs::directory_iterator(old))
      fs::create_symlink(entry.path(), "/etc/" + entry.path().filename().string());
    write_file("/etc/hosts", "");
  }

  std::string folder_ = "/proc/fs/netshape";
};

// Changes links at their instants, counted from its making, until it goes.
class Timeline {
 public:
  Timeline(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network)
      : begun_(now()), thread_([this, &actions, &network] { play(actions, network); }) {}
  ~Timeline() {
    over_ = true;
    thread_.join();
  }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

 private:
  void play(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network) {
    constexpr std::int64_t look_every = 100'000'000;
    for (const emulator::TimedAction& action : actions) {
      const std::int64_t due = begun_.ns + action.at.ns;
      while (!over_ && now().ns < due)
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(due - now().ns, look_every)));
      if (over_) return;
      if (const auto* shape = std::get_if<emulator::ShapeLinks>(&action.action))
        network.change(shape->changes, {due});
    }
  }

  Instant begun_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// So that a command finds `netshape` itself, wherever it lies.
void be_on_the_path() {
  const char* path = std::getenv("PATH");
  const std::string here = fs::read_symlink("/proc/self/exe").parent_path();
  ::setenv("PATH", (here + ":" + (path ? path : "/usr/bin:/bin")).c_str(), 1);
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  const std::vector<char*> argv = c_strings(words);
  ::execvp(argv[0], argv.data());
  throw_errno("run " + command[0]);
}

void enter(const std::string& folder, const std::string& node) {
  const FileDescriptor name_space(::open((folder + "/" + node).c_str(), O_RDONLY | O_CLOEXEC));
  if (!name_space) {
    std::string names;
    for (const auto& entry : fs::directory_iterator(folder))
      names += (names.empty() ? "" : ", ") + entry.path().filename().string();
    throw Error("there is no node '" + node + "'; there are " + names, ExitCode::usage);
  }
  check_system(::setns(name_space.get(), CLONE_NEWNET), ("enter " + node).c_str());
  // So that `hostname`, and programs that ask for it, say which node they are on.
  if (::unshare(CLONE_NEWUTS) == 0)
    check_system(::sethostname(node.data(), node.size()), "set the host's name");
}

std::unique_ptr<netshape::Backend> build(const Network& network, const std::string& wish) {
  const netshape::BackendKind kind = netshape::choose_backend(wish);
  netshape::enter_user_namespace();
  auto backend = netshape::open_backend(kind, now);
  backend->apply(network.plan);
  return backend;
}

}  // namespace

int verify_here(const Network& network, const std::string& backend) {
  const auto built = build(network, backend);
  const auto verdicts = netshape::verify(*built);
  std::cout << netshape::to_text(verdicts) << std::flush;
  const bool good = std::all_of(verdicts.begin(), verdicts.end(),
                                [](const auto& verdict) { return verdict.ok(); });
  return good ? 0 : static_cast<int>(ExitCode::run_failed);
}

int run_here(const Network& network, const std::vector<std::string>& command,
             const HereOptions& options) {
  const auto built = build(network, options.backend);
  const Directory directory(*built);
  if (options.scratch) {
    std::vector<std::string> seen = folders_of(command);
    seen.insert(seen.end(), options.keep.begin(), options.keep.end());
    make_scratch_folders(seen);
  }
  ::setenv(namespaces_variable, directory.path().c_str(), 1);
  be_on_the_path();
  const pid_t child = check_system(::fork(), "fork");
  if (child == 0) {
    try {
      if (!options.node.empty()) enter(directory.path(), options.node);
      become(command);
    } catch (const Error& error) {
      std::fprintf(stderr, "netshape: %s\n", error.what());
      ::_exit(static_cast<int>(error.code()));
    }
  }
  const Timeline timeline(network.timeline, *built);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw_errno("wait for the command");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void exec_on(const std::string& node, const std::vector<std::string>& command) {
  const char* folder = std::getenv(namespaces_variable);
  if (!folder)
    throw Error("`netshape exec` works within a command of `netshape run`, where the network is",
                ExitCode::usage);
  enter(folder, node);
  become(command);
}

}  // namespace orrery::net
