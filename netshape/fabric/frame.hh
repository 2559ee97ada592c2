// Frames as a TAP device with virtio-net headers gives and takes them: what they are, and how a
// part of a super-packet is made into a frame of its own. Pure: bytes in, bytes out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "netshape/fabric/link_emulation.hh"

namespace orrery::netshape {

using Mac = std::array<std::uint8_t, 6>;

/// struct virtio_net_hdr (Virtio 1.2, section 5.1.6), whose own header is not C++: what an offload
/// leaves to be done.
struct OffloadHeader {
  static constexpr std::uint8_t needs_checksum = 1;  ///< of `flags`
  static constexpr std::uint8_t no_segments = 0;     ///< of `kind`
  static constexpr std::uint8_t tcp4_segments = 1;
  static constexpr std::uint8_t ecn = 0x80;  ///< the sender answers a mark with the first segment

  std::uint8_t flags = 0;
  std::uint8_t kind = no_segments;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_payload = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

/// The largest frame that a TAP device gives: 64 KiB of IP packet and an Ethernet header.
inline constexpr std::size_t largest_frame = 65536 + 14;
/// Ethernet, IPv4 and TCP with all their options.
inline constexpr std::size_t largest_headers = 14 + 60 + 60;

struct FrameShape {
  std::uint32_t destination = 0;  ///< IPv4, in network order
  PacketSizes sizes;
  std::size_t headers = 0;  ///< bytes that each segment repeats; the IPv4 header's end otherwise
  std::size_t payload = 0;  ///< bytes after them
  std::size_t segment_payload = 0;  ///< of each segment but the last; 0: not a super-packet
};

/// None for what is not a whole IPv4 packet, and for offloads that were not asked for.
std::optional<FrameShape> shape_of(const OffloadHeader& net, std::span<const std::byte> frame);

/// A frame that is ready to be written in three pieces: `net`, `headers`, and a part of the
/// original's payload.
struct Slice {
  OffloadHeader net;
  std::array<std::byte, largest_headers> headers{};
  std::size_t header_bytes = 0;
  std::size_t payload_offset = 0;  ///< in the original frame
  std::size_t payload_bytes = 0;
};

/// Segments first … first + count - 1 of `frame`, as segmentation offload makes them: lengths,
/// sequence numbers, identifications, flags and checksums as if each had been sent by itself.
/// `marked`: "congestion experienced" in the IPv4 header.
Slice cut(const OffloadHeader& net, std::span<const std::byte> frame, const FrameShape& shape,
          int first, int count, bool marked);

/// Completes the checksum that was left to the device, then flips a bit behind the Ethernet header,
/// chosen by `draw`. `packet` is a whole frame; afterwards it needs no offload.
void corrupt(OffloadHeader& net, std::span<std::byte> packet, std::uint32_t draw);

void set_addresses(Slice& slice, const Mac& to, const Mac& from);

/// The Internet checksum (RFC 1071) of `bytes`, folded into 16 bits and not yet inverted; `start`
/// is a sum to go on from.
std::uint16_t internet_sum(std::span<const std::byte> bytes, std::uint32_t start = 0);

}  // namespace orrery::netshape
