#include "netshape/fabric/tap.hh"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hh"

namespace orrery::netshape {
namespace {

constexpr const char* control_path = "/dev/net/tun";

FileDescriptor open_control() {
  const int fd = ::open(control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO))
    throw MachineError(std::string(control_path) +
                       " is missing; load the module tun (CONFIG_TUN), or in a container pass "
                       "--device /dev/net/tun");
  if (fd < 0 && (errno == EACCES || errno == EPERM))
    throw MachineError(std::string(control_path) +
                       " cannot be opened: not permitted; as root: chmod 0666 " + control_path);
  if (fd < 0) throw_errno(std::string("open ") + control_path);
  return FileDescriptor(fd);
}

}  // namespace

TapDevice::TapDevice(const std::string& name, bool offload) : fd_(open_control()), name_(name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(fd_.get(), TUNSETIFF, &request) != 0) {
    if (errno == EPERM)
      throw MachineError("make the TAP device " + name +
                         ": not permitted; run as root, with CAP_NET_ADMIN, or inside a user "
                         "namespace");
    throw_errno("make the TAP device " + name);
  }
  const unsigned offloads = offload ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN : 0;
  check_system(::ioctl(fd_.get(), TUNSETOFFLOAD, offloads), "set the offloads of a TAP device");
  index_ = static_cast<int>(::if_nametoindex(name.c_str()));
  if (index_ == 0) throw_errno("find the TAP device " + name);
}

void TapDevice::set_mac(const Mac& mac) {
  ifreq request{};
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(request.ifr_hwaddr.sa_data, mac.data(), mac.size());
  check_system(::ioctl(fd_.get(), SIOCSIFHWADDR, &request), "set a TAP device's address");
  mac_ = mac;
}

FrameRef TapDevice::read(FramePool& pool) {
  if (!landing_) landing_ = pool.take(largest_frame);
  const std::span<std::byte> room = landing_->room();
  const iovec parts[2] = {{&landing_->net, sizeof landing_->net}, {room.data(), room.size()}};
  const ssize_t got = ::readv(fd_.get(), parts, 2);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) throw_errno("read from the TAP device " + name_);
  if (got < static_cast<ssize_t>(sizeof landing_->net)) return {};
  const std::size_t size = static_cast<std::size_t>(got) - sizeof landing_->net;
  landing_->set_size(size);
  // Small frames are moved out of the large one, which is read into again.
  FrameRef fitting = pool.take(size);
  if (fitting->room().size() == room.size()) return std::exchange(landing_, std::move(fitting));
  std::memcpy(fitting->room().data(), room.data(), size);
  fitting->net = landing_->net;
  fitting->set_size(size);
  return fitting;
}

bool TapDevice::write(const Frame& frame, int first, int count, bool marked, const Mac& from) {
  Slice slice = cut(frame.net, frame.bytes(), frame.shape, first, count, marked);
  set_addresses(slice, mac_, from);
  const std::byte* payload = frame.bytes().data() + slice.payload_offset;
  const iovec parts[3] = {{&slice.net, sizeof slice.net},
                          {slice.headers.data(), slice.header_bytes},
                          {const_cast<std::byte*>(payload), slice.payload_bytes}};
  return ::writev(fd_.get(), parts, 3) > 0;
}

bool TapDevice::write_corrupt(const Frame& frame, int first, bool marked, std::uint32_t draw,
                              const Mac& from) {
  Slice slice = cut(frame.net, frame.bytes(), frame.shape, first, 1, marked);
  set_addresses(slice, mac_, from);
  std::array<std::byte, largest_frame> packet;
  std::memcpy(packet.data(), slice.headers.data(), slice.header_bytes);
  std::memcpy(packet.data() + slice.header_bytes, frame.bytes().data() + slice.payload_offset,
              slice.payload_bytes);
  const std::size_t size = slice.header_bytes + slice.payload_bytes;
  corrupt(slice.net, std::span(packet).first(size), draw);
  const iovec parts[2] = {{&slice.net, sizeof slice.net}, {packet.data(), size}};
  return ::writev(fd_.get(), parts, 2) > 0;
}

}  // namespace orrery::netshape
