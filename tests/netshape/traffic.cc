#include "tests/netshape/traffic.hh"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/error.hh"
#include "netshape/namespace.hh"

namespace orrery::netshape::test {
namespace {

constexpr std::size_t chunk = 1 << 16;

FileDescriptor open_at(const Backend& backend, const std::string& vertex, int type) {
  const InNamespace inside(backend.node_namespace(vertex));
  FileDescriptor opened(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (!opened) throw_errno("open a socket at " + vertex);
  return opened;
}

sockaddr_in bind_at(const Backend& backend, int fd, const std::string& vertex) {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  inet_pton(AF_INET, backend.current().vertex(vertex).address.c_str(), &here.sin_addr);
  check_system(bind(fd, reinterpret_cast<sockaddr*>(&here), sizeof here), "bind");
  socklen_t size = sizeof here;
  check_system(getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size), "getsockname");
  return here;
}

struct Shared {
  std::int64_t began_ns;
};

[[noreturn]] void send_all(int fd, const sockaddr_in& peer, std::int64_t bytes, double seconds,
                           Shared* shared) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) _exit(1);
  static std::array<char, chunk> data{};
  shared->began_ns = now_ns();
  const std::int64_t end = shared->began_ns + static_cast<std::int64_t>(seconds * 1e9);
  while (bytes > 0 && now_ns() < end) {
    const auto size = std::min<std::int64_t>(bytes, static_cast<std::int64_t>(chunk));
    const ssize_t sent = ::send(fd, data.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) _exit(2);
    bytes -= sent;
  }
  shutdown(fd, SHUT_WR);
  char byte = 0;
  while (recv(fd, &byte, 1, 0) > 0) {
  }
  _exit(0);
}

}  // namespace

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void sleep_ns(std::int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

Udp::Udp(const Backend& backend, const std::string& from, const std::string& to)
    : from_(open_at(backend, from, SOCK_DGRAM)), to_(open_at(backend, to, SOCK_DGRAM)) {
  const int room = 64 << 20;
  setsockopt(to_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  setsockopt(from_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  const sockaddr_in peer = bind_at(backend, to_.get(), to);
  check_system(connect(from_.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer),
               "connect");
}

void Udp::send(std::uint32_t number, std::int64_t payload) {
  std::array<char, 9000> data{};
  const std::int64_t now = now_ns();
  std::memcpy(data.data(), &number, sizeof number);
  std::memcpy(data.data() + 8, &now, sizeof now);
  check_system(::send(from_.get(), data.data(), static_cast<std::size_t>(payload), 0), "send");
}

std::optional<Arrival> Udp::receive(std::int64_t patience_ns) {
  pollfd wait{to_.get(), POLLIN, 0};
  const timespec span{patience_ns / 1'000'000'000, patience_ns % 1'000'000'000};
  if (check_system(ppoll(&wait, 1, &span, nullptr), "ppoll") == 0) return {};
  Arrival arrival;
  arrival.ns = now_ns();
  std::array<char, 16> data{};
  check_system(recv(to_.get(), data.data(), data.size(), MSG_DONTWAIT), "recv");
  std::memcpy(&arrival.number, data.data(), sizeof arrival.number);
  std::memcpy(&arrival.sent_ns, data.data() + 8, sizeof arrival.sent_ns);
  return arrival;
}

Arrival Udp::arrival() {
  if (const auto next = receive(10'000'000'000)) return *next;
  throw Error("no packet arrived");
}

std::vector<Arrival> Udp::receive_all(std::int64_t patience_ns) {
  std::vector<Arrival> all;
  while (const auto arrival = receive(patience_ns)) all.push_back(*arrival);
  return all;
}

std::vector<Sample> tcp(const Backend& backend, const std::string& from, const std::string& to,
                        std::int64_t bytes, double seconds) {
  const FileDescriptor listener = open_at(backend, to, SOCK_STREAM);
  const FileDescriptor sender = open_at(backend, from, SOCK_STREAM);
  // The window is open from the beginning, as an agent's is. Linux lets it grow by what is read at
  // a time, 6.12 otherwise than 6.1, and we read in large pieces.
  const int room = static_cast<int>(backend.current().vertex(to).socket_buffer.value);
  setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  // As in the time-travel kernel, whatever a host prefers.
  constexpr std::string_view cubic = "cubic";
  std::array<char, 16> chosen{};
  socklen_t length = chosen.size();
  getsockopt(sender.get(), IPPROTO_TCP, TCP_CONGESTION, chosen.data(), &length);
  if (cubic != chosen.data())
    setsockopt(sender.get(), IPPROTO_TCP, TCP_CONGESTION, cubic.data(), cubic.size());
  const sockaddr_in peer = bind_at(backend, listener.get(), to);
  check_system(listen(listener.get(), 1), "listen");
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = check_system(fork(), "fork");
  if (child == 0) send_all(sender.get(), peer, bytes, seconds, shared);

  const FileDescriptor receiver(check_system(accept(listener.get(), nullptr, nullptr), "accept"));
  // A waking for each packet costs ten times what the packet does; but some fifty a second.
  const auto& rate = backend.current().path(from, to).rate;
  const double a_time = rate ? rate->bytes_per_second() / 50 : 128 << 10;
  const int wake_after = static_cast<int>(std::clamp(a_time, 4096.0, 131072.0));
  setsockopt(receiver.get(), SOL_SOCKET, SO_RCVLOWAT, &wake_after, sizeof wake_after);
  std::vector<Sample> samples;
  std::vector<char> data(1 << 20);
  std::int64_t total = 0;
  for (;;) {
    const ssize_t got = check_system(recv(receiver.get(), data.data(), data.size(), 0), "recv");
    const std::int64_t now = now_ns();
    if (got == 0) break;
    total += got;
    samples.push_back({now, total});
  }
  ::shutdown(receiver.get(), SHUT_RDWR);
  int status = 0;
  waitpid(child, &status, 0);
  const std::int64_t began = shared->began_ns;
  munmap(shared, sizeof(Shared));
  if (status != 0) throw Error("the TCP sender failed");
  for (Sample& sample : samples) sample.ns -= began;
  return samples;
}

}  // namespace orrery::netshape::test
