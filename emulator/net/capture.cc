#include "emulator/net/capture.hh"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/controller/controller.hh"
#include "emulator/net/pcapng.hh"

namespace orrery::net {
namespace {

constexpr std::uint32_t longest_packet = 65536 + 14;
constexpr int waiting_bytes = 64 << 20;

volatile sig_atomic_t ending = 0;

FileDescriptor packet_socket() {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (fd < 0 && errno == EAFNOSUPPORT)
    throw MachineError("this kernel has no packet sockets (CONFIG_PACKET)");
  FileDescriptor socket(check_system(fd, "open a packet socket"));
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &waiting_bytes, sizeof waiting_bytes);
  const int on = 1;
  check_system(::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), "ask for times");
  return socket;
}

class Capture {
 public:
  explicit Capture(int out) : out_(out), socket_(packet_socket()), buffer_(longest_packet) {
    write_all(out_, pcapng::header("netshape"), "write the capture");
    // Every interface has its block before its first packet, also where none comes.
    struct if_nameindex* all = ::if_nameindex();
    for (struct if_nameindex* i = all; i && i->if_index != 0; ++i)
      if (std::string(i->if_name) != "lo") number_of(static_cast<int>(i->if_index), i->if_name);
    ::if_freenameindex(all);
  }

  std::int64_t count() const { return count_; }

  void run(std::optional<Duration> lasts) {
    const std::int64_t end = lasts ? emulator::monotonic_ns() + lasts->ns : 0;
    while (!ending) {
      pollfd wait{socket_.get(), POLLIN, 0};
      timespec span{1, 0};
      if (lasts) {
        const std::int64_t left = end - emulator::monotonic_ns();
        if (left <= 0) return;
        if (left < 1'000'000'000) span = {0, static_cast<long>(left)};
      }
      if (::ppoll(&wait, 1, &span, nullptr) < 0 && errno != EINTR) throw_errno("wait for packets");
      while (take()) {
      }
    }
  }

 private:
  std::uint32_t number_of(int index, const char* name) {
    const auto [found, fresh] =
        numbers_.emplace(index, static_cast<std::uint32_t>(numbers_.size()));
    if (fresh) write_all(out_, pcapng::interface(name, longest_packet), "write the capture");
    return found->second;
  }

  bool take() {
    sockaddr_ll from{};
    iovec part{buffer_.data(), buffer_.size()};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr header{};
    header.msg_name = &from;
    header.msg_namelen = sizeof from;
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ENETDOWN) return false;
      throw_errno("read packets");
    }
    if (from.sll_hatype != ARPHRD_ETHER) return true;
    timespec time{};
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
        std::memcpy(&time, CMSG_DATA(c), sizeof time);
    char name[IF_NAMESIZE] = "?";
    ::if_indextoname(static_cast<unsigned>(from.sll_ifindex), name);
    const std::uint32_t number = number_of(from.sll_ifindex, name);
    const auto whole = static_cast<std::size_t>(got);
    const std::span<const std::byte> bytes(buffer_.data(), std::min(whole, buffer_.size()));
    write_all(
        out_,
        pcapng::packet(number, time.tv_sec * 1'000'000'000 + time.tv_nsec, bytes,
                       static_cast<std::uint32_t>(whole), from.sll_pkttype == PACKET_OUTGOING),
        "write the capture");
    ++count_;
    return true;
  }

  int out_;
  FileDescriptor socket_;
  std::vector<std::byte> buffer_;
  std::map<int, std::uint32_t> numbers_;  ///< of interfaces in the file, by index
  std::int64_t count_ = 0;
};

}  // namespace

std::int64_t capture(const std::string& path, std::optional<Duration> lasts) {
  struct sigaction action {};
  action.sa_handler = [](int) { ending = 1; };
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  FileDescriptor file;
  if (path != "-") file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  Capture running(path == "-" ? STDOUT_FILENO : file.get());
  running.run(lasts);
  return running.count();
}

}  // namespace orrery::net
