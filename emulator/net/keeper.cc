#include "emulator/net/keeper.hh"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/config/load.hh"
#include "emulator/config/network.hh"
#include "emulator/config/network_file.hh"
#include "emulator/controller/controller.hh"
#include "emulator/net/built.hh"
#include "emulator/plan/run_plan.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t longest_message = 16 << 20;

// --- where

std::string folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime && *runtime) return std::string(runtime) + "/netshape";
  return ::geteuid() == 0 ? "/run/netshape" : "/tmp/netshape-" + std::to_string(::geteuid());
}

std::string socket_path(const std::string& name) { return folder() + "/" + name + ".sock"; }

// Ours alone: whoever reaches a keeper's socket may enter its nodes.
void make_folder() {
  const std::string path = folder();
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("make " + path);
  struct stat info {};
  check_system(::lstat(path.c_str(), &info), ("look at " + path).c_str());
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    throw MachineError(path + " is not a folder of this user's alone; remove it");
}

void check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 40 &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '-';
                    });
  if (!good)
    throw Error("'" + name +
                    "' is no name of a network; write letters, digits, '_' and '-', at "
                    "most 40, with --name",
                ExitCode::usage);
}

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket_path(name);
  if (path.size() >= sizeof address.sun_path) throw Error(path + " is too long for a socket");
  path.copy(address.sun_path, path.size());
  return address;
}

FileDescriptor stream_socket() {
  return FileDescriptor(
      check_system(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "make a socket"));
}

/// None: nobody answers there.
std::optional<FileDescriptor> connected(const std::string& name) {
  FileDescriptor socket = stream_socket();
  const sockaddr_un address = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return {};
    throw_errno("reach the keeper of " + name);
  }
  return socket;
}

// --- messages: one JSON text each way, descriptors beside an answer

void send_text(int socket, const std::string& text, const std::vector<int>& descriptors = {}) {
  // Long texts in parts; an empty one ends them.
  constexpr std::size_t part = 60'000;
  for (std::size_t at = 0; at < text.size(); at += part) {
    const std::size_t size = std::min(part, text.size() - at);
    if (::send(socket, text.data() + at, size, MSG_NOSIGNAL) < 0) throw_errno("send");
  }
  char mark = '\0';
  iovec vector{&mark, 1};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> room{};
  if (!descriptors.empty()) {
    header.msg_control = room.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) throw_errno("send");
}

struct Received {
  std::string text;
  std::vector<FileDescriptor> descriptors;
  FileDescriptor connection;  ///< that the answer came over
};

/// None: the other end went away.
std::optional<Received> receive(int socket) {
  Received received;
  std::vector<char> buffer(65'536);
  for (;;) {
    iovec vector{buffer.data(), buffer.size()};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> room{};
    header.msg_control = room.data();
    header.msg_controllen = room.size();
    const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        received.descriptors.emplace_back(fd);
      }
    }
    if (got == 1 && buffer[0] == '\0') return received;
    received.text.append(buffer.data(), static_cast<std::size_t>(got));
    if (received.text.size() > longest_message) throw Error("a message is too long");
  }
}

// --- the keeper's side

class Keeper {
 public:
  Keeper(Network network, std::unique_ptr<netshape::Backend> backend)
      : network_(std::move(network)),
        backend_(std::move(backend)),
        directory_(*backend_),
        timeline_(network_.timeline, *backend_) {
    network_.file.timeline.clear();
    network_.file.cluster.network = config::spelt_out(network_.file.cluster.network);
    for (const char* kind : {"user", "mnt"})
      spaces_.push_back(open_file(std::string("/proc/self/ns/") + kind, O_RDONLY));
    // Who enters a mount namespace is at its root, which in a chroot is not ours.
    spaces_.push_back(open_file("/", O_PATH | O_DIRECTORY));
  }

  /// False: it was the last request; `close` is called before that is answered.
  bool serve(int client, const std::function<void()>& close) {
    const auto request = receive(client);
    if (!request) return true;
    Json answer;
    std::vector<int> descriptors;
    bool last = false;
    try {
      const Json asked = Json::parse(request->text);
      const std::string what = asked.at("do");
      if (what == "show") {
        answer["text"] = config::network_to_yaml(network_.file);
      } else if (what == "change") {
        answer["text"] = change(asked.at("what"), asked.at("settings"));
      } else if (what == "enter") {
        for (const FileDescriptor& space : spaces_) descriptors.push_back(space.get());
        answer["folder"] = directory_.path();
      } else if (what == "down") {
        last = true;
        backend_->remove();
        close();
      }
    } catch (const Error& error) {
      answer = {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}, {"code", 1}};
    }
    try {
      send_text(client, answer.dump(), descriptors);
    } catch (const Error&) {
      // Whoever asked has gone.
    }
    return !last;
  }

 private:
  // The directions that `what` names, as the places of their figures in the file.
  std::vector<std::string> places(const std::string& what) const {
    const config::Network& now = network_.file.cluster.network;
    std::string from = what;
    std::string to;
    bool both = true;
    for (const std::string arrow : {"<->", "->"}) {
      const std::size_t at = what.find(arrow);
      if (at == std::string::npos) continue;
      from = what.substr(0, at);
      to = what.substr(at + arrow.size());
      both = arrow == "<->";
      break;
    }
    std::vector<std::string> found;
    for (std::size_t i = 0; i < now.wires.size(); ++i) {
      const config::Wire& wire = now.wires[i];
      const std::string place = "cluster.network.wires." + std::to_string(i);
      const bool along = wire.a == from && (to.empty() || wire.b == to);
      const bool against = wire.b == from && (to.empty() || wire.a == to);
      if (along || (against && both)) found.push_back(place + ".forth");
      if (against || (along && both)) found.push_back(place + ".back");
    }
    if (found.empty()) {
      std::string links;
      for (const config::Wire& wire : now.wires)
        links += (links.empty() ? "" : ", ") + wire.a + "<->" + wire.b;
      throw Error("nothing here is called '" + what +
                      "'; name a node, A->B or A<->B; the links are " + links,
                  ExitCode::usage);
    }
    return found;
  }

  std::string change(const std::string& what, const std::vector<std::string>& settings) {
    std::vector<std::string> overrides;
    for (const std::string& place : places(what))
      for (const std::string& setting : settings) overrides.push_back(place + "." + setting);
    const auto catalog = emulator::strategy_catalog();
    const config::Experiment after =
        config::load_text("set", config::to_yaml(network_.file, catalog), catalog, overrides)
            .experiment;
    std::vector<netshape::LinkChange> changes;
    std::string text;
    const netshape::Topology before = config::topology_of(network_.file.cluster.network);
    const netshape::Topology wanted = config::topology_of(after.cluster.network);
    const auto compare = [&](const std::string& name, const netshape::LinkSpec& old,
                             const netshape::LinkSpec& now) {
      if (old == now) return;
      changes.push_back({name, now});
      text += name + ": " + netshape::to_string(now) + "\n";
    };
    for (std::size_t i = 0; i < wanted.links.size(); ++i) {
      const netshape::Link& link = wanted.links[i];
      compare(netshape::link_name(link.a, link.b), before.links[i].a_to_b, link.a_to_b);
      compare(netshape::link_name(link.b, link.a), before.links[i].b_to_a, link.b_to_a);
    }
    if (!changes.empty()) backend_->change(changes, {emulator::monotonic_ns()});
    network_.file = after;
    return text;
  }

  Network network_;
  std::unique_ptr<netshape::Backend> backend_;
  Directory directory_;
  Timeline timeline_;
  std::vector<FileDescriptor> spaces_;
};

FileDescriptor bound(const std::string& name) {
  FileDescriptor socket = stream_socket();
  const sockaddr_un address = address_of(name);
  ::unlink(address.sun_path);
  check_system(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               ("bind " + socket_path(name)).c_str());
  check_system(::listen(socket.get(), 64), ("listen on " + socket_path(name)).c_str());
  return socket;
}

volatile sig_atomic_t ending = 0;

// Ends with `down`, or by SIGTERM or SIGINT.
[[noreturn]] void keep(const Network& network, const std::string& name, const std::string& backend,
                       FileDescriptor report, pid_t starter) {
  ::prctl(PR_SET_NAME, "netshape");
  ::setsid();
  try {
    // In this order: reachable as soon as it is there, and until it is, it ends with its starter.
    FileDescriptor listener = bound(name);
    auto built = build(network, backend);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // again: a change of user namespace has cleared it
    if (::getppid() != starter) ::_exit(1);
    Keeper keeper(network, std::move(built));
    check_system(::chdir("/"), "leave the folder");
    ::prctl(PR_SET_PDEATHSIG, 0);
    write_all(report.get(), "up", "report");
    report.reset();
    const FileDescriptor nothing = open_file("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(nothing.get(), fd);
    struct sigaction action {};
    action.sa_handler = [](int) { ending = 1; };
    for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    while (!ending) {
      const FileDescriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      // Whoever asks and then says nothing must not hold up the others for ever.
      const timeval patience{5, 0};
      ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      // From then on nobody finds it, and who looks for it is told so.
      const auto close = [&] {
        ::unlink(socket_path(name).c_str());
        listener.reset();
      };
      if (!keeper.serve(client.get(), close)) ::_exit(0);
    }
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const Json told{{"error", error.what()}, {"code", ours ? static_cast<int>(ours->code()) : 1}};
    if (report) write_all(report.get(), told.dump(), "report");
  }
  ::unlink(socket_path(name).c_str());
  ::_exit(0);
}

// --- the other side

// A keeper that has been killed may take connections for as long as the kernel needs to free what
// it had, and answer none.
Received ask(const std::string& name, const Json& question) {
  constexpr int patience = 100;
  for (int i = 0; i < patience; ++i) {
    auto socket = connected(name);
    if (!socket)
      throw Error("no network '" + name + "' is up; `netshape up FILE` brings one up",
                  ExitCode::usage);
    std::optional<Received> answer;
    try {
      send_text(socket->get(), question.dump());
      answer = receive(socket->get());
    } catch (const SystemError&) {
      // It went away in between.
    }
    if (!answer) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    const Json told = Json::parse(answer->text);
    if (told.is_object() && told.contains("error"))
      throw Error(told.at("error").get<std::string>(),
                  static_cast<ExitCode>(told.at("code").get<int>()));
    answer->connection = std::move(*socket);
    return std::move(*answer);
  }
  throw Error("the keeper of '" + name + "' does not answer");
}

std::string text_of(const Received& received) {
  return Json::parse(received.text).at("text").get<std::string>();
}

}  // namespace

void bring_up(const Network& network, const std::string& name, const std::string& backend) {
  check_name(name);
  make_folder();
  if (connected(name))
    throw Error("a network '" + name + "' is up already; take it down with `netshape down " + name +
                    "`, or give this one another name with --name",
                ExitCode::usage);
  int ends[2];
  check_system(::pipe2(ends, O_CLOEXEC), "make a pipe");
  const FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t starter = ::getpid();
  const pid_t child = check_system(::fork(), "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != starter) ::_exit(1);
    keep(network, name, backend, std::move(theirs), starter);
  }
  theirs.reset();
  const std::string report = read_to_end(ours.get());
  if (report == "up") return;
  if (report.empty()) throw Error("the network's keeper ended while it was building");
  const Json told = Json::parse(report);
  throw Error(told.at("error").get<std::string>(),
              static_cast<ExitCode>(told.at("code").get<int>()));
}

std::vector<std::string> networks_up() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder(), none)) {
    if (entry.path().extension() != ".sock") continue;
    const std::string name = entry.path().stem();
    if (connected(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string chosen_network(const std::string& name) {
  if (!name.empty()) return name;
  const std::vector<std::string> names = networks_up();
  if (names.size() == 1) return names.front();
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  throw Error(names.empty() ? "no network is up; `netshape up FILE` brings one up"
                            : "more than one network is up; name one of " + all,
              ExitCode::usage);
}

bool bring_down(const std::string& name) {
  check_name(name);
  if (!connected(name)) {
    ::unlink(socket_path(name).c_str());
    return false;
  }
  const Received answer = ask(name, {{"do", "down"}});
  // Its end closes the connection.
  char nothing;
  while (::recv(answer.connection.get(), &nothing, 1, 0) > 0) {
  }
  return true;
}

std::string show(const std::string& name) { return text_of(ask(name, {{"do", "show"}})); }

std::string change(const std::string& name, const std::string& what,
                   const std::vector<std::string>& settings) {
  return text_of(ask(name, {{"do", "change"}, {"what", what}, {"settings", settings}}));
}

void enter(const std::string& name, const std::string& node) {
  const Received answer = ask(name, {{"do", "enter"}});
  const std::string at = Json::parse(answer.text).at("folder");
  if (answer.descriptors.size() != 3)
    throw Error("the keeper of '" + name + "' sent no namespaces");
  const fs::path here = fs::current_path();
  // To enter the user namespace that one is in already is an error.
  struct stat own {
  }, theirs{};
  check_system(::stat("/proc/self/ns/user", &own), "look at the user namespace");
  check_system(::fstat(answer.descriptors[0].get(), &theirs), "look at the keeper's");
  if (own.st_ino != theirs.st_ino)
    check_system(::setns(answer.descriptors[0].get(), CLONE_NEWUSER), "enter the user namespace");
  check_system(::setns(answer.descriptors[1].get(), CLONE_NEWNS), "enter the mount namespace");
  check_system(::fchdir(answer.descriptors[2].get()), "enter the keeper's root");
  check_system(::chroot("."), "enter the keeper's root");
  if (::chdir(here.c_str()) != 0) check_system(::chdir("/"), "enter /");
  ::setenv(namespaces_variable, at.c_str(), 1);
  enter_node(at, node);
}

}  // namespace orrery::net
