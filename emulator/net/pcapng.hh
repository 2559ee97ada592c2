// Packets as a pcapng file (draft-ietf-opsawg-pcapng), with nanoseconds and the interfaces' names:
// what Wireshark and tcpdump read. Pure: bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::net::pcapng {

/// The file's first block.
std::string header(const std::string& application);
/// An Ethernet interface; the first is number 0.
std::string interface(const std::string& name, std::uint32_t longest_packet);
/// `ns` since 1970. `bytes` may be the beginning of `length` bytes. `outbound`: sent by the node.
std::string packet(std::uint32_t interface_number, std::int64_t ns,
                   std::span<const std::byte> bytes, std::uint32_t length, bool outbound);

}  // namespace orrery::net::pcapng
