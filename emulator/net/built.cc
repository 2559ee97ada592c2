#include "emulator/net/built.hh"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/c_strings.hh"
#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/controller/controller.hh"
#include "netshape/open_backend.hh"
#include "netshape/user_namespace.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;

Instant now() { return {emulator::monotonic_ns()}; }

// A root made for containers may lack /etc/hosts, and is read-only here: an /etc of our own whose
// entries lead to those of the old one.
void make_room_in_etc() {
  const std::string old = "/proc/fs/etc";
  fs::create_directory(old);
  check_system(::mount("/etc", old.c_str(), nullptr, MS_BIND, nullptr), "hold /etc");
  check_system(::mount("none", "/etc", "tmpfs", 0, nullptr), "mount over /etc");
  for (const auto& entry : fs::directory_iterator(old))
    fs::create_symlink(entry.path(), "/etc/" + entry.path().filename().string());
  write_file("/etc/hosts", "");
}

void make_mounts_private() {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return;
  if (errno != EINVAL) throw_errno("make mounts private");
  // In a chroot / is no mount; then those that can be seen from here, one by one.
  std::ifstream mounts("/proc/self/mounts");
  std::string device;
  std::string point;
  for (std::string rest; mounts >> device >> point && std::getline(mounts, rest);)
    if (::mount("none", point.c_str(), nullptr, MS_PRIVATE, nullptr) != 0 && errno != EINVAL)
      throw_errno("make the mount " + point + " private");
}

}  // namespace

std::unique_ptr<netshape::Backend> build(const Network& network, const std::string& wish) {
  const netshape::BackendKind kind = netshape::choose_backend(wish);
  netshape::enter_user_namespace();
  auto backend = netshape::open_backend(kind, now);
  backend->apply(network.plan);
  return backend;
}

Directory::Directory(const netshape::Backend& network) {
  check_system(::unshare(CLONE_NEWNS), "make a mount namespace");
  make_mounts_private();
  // /proc/fs is empty, and nobody's files lie below it. In the time-travel kernel our init has
  // put a folder there already.
  std::error_code failed;
  if (!fs::create_directory(folder_, failed)) {
    check_system(::mount("none", "/proc/fs", "tmpfs", 0, nullptr), "mount a folder for the nodes");
    fs::create_directory(folder_);
  }
  std::string hosts = "127.0.0.1 localhost\n";
  for (const netshape::VertexPlan& vertex : network.current().vertices) {
    hosts += vertex.address + " " + vertex.name + "\n";
    const std::string file = folder_ + "/" + vertex.name;
    write_file(file, "");
    const std::string held = "/proc/self/fd/" + std::to_string(network.node_namespace(vertex.name));
    check_system(::mount(held.c_str(), file.c_str(), nullptr, MS_BIND, nullptr),
                 ("name the namespace of " + vertex.name).c_str());
  }
  write_file("/proc/fs/hosts", hosts);
  if (!fs::exists("/etc/hosts")) make_room_in_etc();
  check_system(::mount("/proc/fs/hosts", "/etc/hosts", nullptr, MS_BIND, nullptr),
               "mount the nodes' addresses over /etc/hosts");
}

struct Timeline::Player {
  Player(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network)
      : begun(now()), thread([this, actions, &network] { play(actions, network); }) {}
  ~Player() {
    over = true;
    thread.join();
  }

  void play(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network) {
    constexpr std::int64_t look_every = 100'000'000;
    for (const emulator::TimedAction& action : actions) {
      const std::int64_t due = begun.ns + action.at.ns;
      while (!over && now().ns < due)
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(due - now().ns, look_every)));
      if (over) return;
      if (const auto* shape = std::get_if<emulator::ShapeLinks>(&action.action))
        network.change(shape->changes, {due});
    }
  }

  Instant begun;
  std::atomic<bool> over{false};
  std::thread thread;
};

Timeline::Timeline(const std::vector<emulator::TimedAction>& actions, netshape::Backend& network)
    : player_(std::make_unique<Player>(actions, network)) {}
Timeline::~Timeline() = default;

void enter_node(const std::string& folder, const std::string& node) {
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

void become(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  const std::vector<char*> argv = c_strings(words);
  ::execvp(argv[0], argv.data());
  throw_errno("run " + command[0]);
}

}  // namespace orrery::net
