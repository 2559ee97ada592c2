// Frames as a TAP device would give them, made by hand, and taken apart again.
#pragma once

#include <string>
#include <vector>

#include "netshape/fabric/frame.hh"

namespace orrery::netshape::test {

struct TestFrame {
  OffloadHeader net;
  std::vector<std::byte> bytes;
};

struct TcpFrame {
  std::string from = "10.0.0.1";
  std::string to = "10.0.0.2";
  std::size_t payload = 100;
  std::uint16_t segment_payload = 0;  ///< 0: no offload
  std::uint32_t sequence = 1000;
  std::uint16_t identification = 7;
  std::uint8_t flags = 0x10;  ///< ACK
  std::uint8_t service = 0;
};

/// Its checksum is left to the device, as the kernel does; timestamps in the header, so 52 bytes of
/// IPv4 and TCP. Byte i of the payload is i × 31, cut to 8 bits.
TestFrame tcp_frame(const TcpFrame& wanted);

TestFrame udp_frame(const std::string& from, const std::string& to, std::size_t ip_bytes);

struct ReadTcp {
  std::uint16_t ip_length = 0;
  std::uint16_t identification = 0;
  std::uint32_t sequence = 0;
  std::uint8_t flags = 0;
  std::uint8_t service = 0;
  bool ip_checksum_right = false;
  /// The field's value, once a device that completes checksums has done so, is right.
  bool tcp_checksum_right = false;
  std::vector<std::byte> payload;
};

/// `packet` is a whole frame with 32 bytes of TCP header.
ReadTcp read_tcp(const OffloadHeader& net, std::vector<std::byte> packet);

/// The three pieces of a slice put together.
std::vector<std::byte> whole(const Slice& slice, const std::vector<std::byte>& original);

}  // namespace orrery::netshape::test
