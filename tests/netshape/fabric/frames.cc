#include "tests/netshape/fabric/frames.hh"

#include <arpa/inet.h>

#include <cstring>

namespace orrery::netshape::test {
namespace {

constexpr std::size_t ip = 14;
constexpr std::size_t tcp = 34;
constexpr std::size_t data = 66;

void put16(std::vector<std::byte>& bytes, std::size_t at, std::size_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}

void put32(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t value) {
  put16(bytes, at, value >> 16);
  put16(bytes, at + 2, value & 0xffff);
}

std::uint32_t get(const std::vector<std::byte>& bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes.at(at + i));
  return value;
}

// Written apart from the code under test, byte by byte.
std::uint32_t plain_sum(const std::vector<std::byte>& bytes, std::size_t from, std::size_t to) {
  std::uint32_t sum = 0;
  for (std::size_t i = from; i < to; ++i)
    sum += std::to_integer<std::uint32_t>(bytes[i]) << ((i - from) % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

void put_ip(std::vector<std::byte>& bytes, const std::string& from, const std::string& to,
            std::uint8_t protocol) {
  put16(bytes, 12, 0x0800);
  bytes[ip] = std::byte{0x45};
  put16(bytes, ip + 2, bytes.size() - ip);
  bytes[ip + 8] = std::byte{64};
  bytes[ip + 9] = std::byte{protocol};
  const in_addr_t a = inet_addr(from.c_str());
  const in_addr_t b = inet_addr(to.c_str());
  std::memcpy(bytes.data() + ip + 12, &a, 4);
  std::memcpy(bytes.data() + ip + 16, &b, 4);
}

}  // namespace

TestFrame tcp_frame(const TcpFrame& wanted) {
  TestFrame frame;
  frame.bytes.assign(data + wanted.payload, std::byte{0});
  std::vector<std::byte>& bytes = frame.bytes;
  put_ip(bytes, wanted.from, wanted.to, 6);
  bytes[ip + 1] = std::byte{wanted.service};
  put16(bytes, ip + 4, wanted.identification);
  put16(bytes, ip + 10, 0xffff & ~plain_sum(bytes, ip, tcp));
  put32(bytes, tcp + 4, wanted.sequence);
  bytes[tcp + 12] = std::byte{0x80};
  bytes[tcp + 13] = std::byte{wanted.flags};
  std::uint32_t pseudo =
      plain_sum(bytes, ip + 12, ip + 20) + 6 + static_cast<std::uint32_t>(bytes.size() - tcp);
  while (pseudo > 0xffff) pseudo = (pseudo & 0xffff) + (pseudo >> 16);
  put16(bytes, tcp + 16, pseudo);
  for (std::size_t i = 0; i < wanted.payload; ++i) bytes[data + i] = static_cast<std::byte>(i * 31);
  frame.net.flags = OffloadHeader::needs_checksum;
  frame.net.checksum_start = tcp;
  frame.net.checksum_offset = 16;
  if (wanted.segment_payload != 0) {
    frame.net.kind = OffloadHeader::tcp4_segments;
    frame.net.segment_payload = wanted.segment_payload;
    frame.net.header_bytes = data;
  }
  return frame;
}

TestFrame udp_frame(const std::string& from, const std::string& to, std::size_t ip_bytes) {
  TestFrame frame;
  frame.bytes.assign(ip + ip_bytes, std::byte{0});
  put_ip(frame.bytes, from, to, 17);
  return frame;
}

ReadTcp read_tcp(const OffloadHeader& net, std::vector<std::byte> packet) {
  ReadTcp read;
  read.ip_length = static_cast<std::uint16_t>(get(packet, ip + 2, 2));
  read.identification = static_cast<std::uint16_t>(get(packet, ip + 4, 2));
  read.sequence = get(packet, tcp + 4, 4);
  read.flags = static_cast<std::uint8_t>(get(packet, tcp + 13, 1));
  read.service = static_cast<std::uint8_t>(get(packet, ip + 1, 1));
  read.ip_checksum_right = plain_sum(packet, ip, tcp) == 0xffff;
  if (net.flags & OffloadHeader::needs_checksum)
    put16(packet, tcp + 16, 0xffff & ~plain_sum(packet, tcp, packet.size()));
  std::uint32_t sum = plain_sum(packet, tcp, packet.size()) + plain_sum(packet, ip + 12, ip + 20) +
                      6 + static_cast<std::uint32_t>(packet.size() - tcp);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  read.tcp_checksum_right = sum == 0xffff;
  read.payload.assign(packet.begin() + data, packet.end());
  return read;
}

std::vector<std::byte> whole(const Slice& slice, const std::vector<std::byte>& original) {
  std::vector<std::byte> packet(
      slice.headers.begin(),
      slice.headers.begin() + static_cast<std::ptrdiff_t>(slice.header_bytes));
  const auto begin = original.begin() + static_cast<std::ptrdiff_t>(slice.payload_offset);
  packet.insert(packet.end(), begin, begin + static_cast<std::ptrdiff_t>(slice.payload_bytes));
  return packet;
}

}  // namespace orrery::netshape::test
