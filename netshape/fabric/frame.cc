#include "netshape/fabric/frame.hh"

#include <algorithm>
#include <cstring>

namespace orrery::netshape {
namespace {

constexpr std::size_t ethernet = 14;
constexpr std::size_t ip_length = ethernet + 2;
constexpr std::size_t ip_identification = ethernet + 4;
constexpr std::size_t ip_checksum = ethernet + 10;
constexpr std::size_t ip_source = ethernet + 12;
constexpr std::size_t ip_destination = ethernet + 16;
constexpr std::size_t ip_service = ethernet + 1;
constexpr std::size_t least_ip_header = 20;
constexpr std::size_t least_tcp_header = 20;
constexpr std::uint8_t tcp_protocol = 6;
constexpr std::uint8_t fin = 0x01, psh = 0x08, cwr = 0x80;
constexpr unsigned ecn_bits = 0x03;

template <typename Bytes>
unsigned byte_at(const Bytes& bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

template <typename Bytes>
std::uint16_t read16(const Bytes& bytes, std::size_t at) {
  return static_cast<std::uint16_t>((byte_at(bytes, at) << 8) | byte_at(bytes, at + 1));
}

template <typename Bytes>
void write16(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value & 0xff);
}

template <typename Bytes>
std::uint32_t read32(const Bytes& bytes, std::size_t at) {
  return (std::uint32_t{read16(bytes, at)} << 16) | read16(bytes, at + 2);
}

template <typename Bytes>
void write32(Bytes& bytes, std::size_t at, std::uint32_t value) {
  write16(bytes, at, static_cast<std::uint16_t>(value >> 16));
  write16(bytes, at + 2, static_cast<std::uint16_t>(value));
}

std::size_t ip_header_bytes(std::span<const std::byte> frame) {
  return (byte_at(frame, ethernet) & 0x0f) * 4;
}

void renew_ip_checksum(Slice& slice, std::size_t ip_header) {
  write16(slice.headers, ip_checksum, 0);
  const std::span<const std::byte> header(slice.headers.data() + ethernet, ip_header);
  write16(slice.headers, ip_checksum, static_cast<std::uint16_t>(~internet_sum(header)));
}

// The headers of one part of a super-packet of TCP.
void renumber(Slice& slice, const FrameShape& shape, std::size_t ip_header, int first, int count) {
  const std::size_t tcp = ethernet + ip_header;
  const std::size_t tcp_bytes = slice.header_bytes - tcp + slice.payload_bytes;
  write16(slice.headers, ip_length, static_cast<std::uint16_t>(ip_header + tcp_bytes));
  write16(slice.headers, ip_identification,
          static_cast<std::uint16_t>(read16(slice.headers, ip_identification) + first));
  const auto skipped =
      static_cast<std::uint32_t>(first) * static_cast<std::uint32_t>(shape.segment_payload);
  write32(slice.headers, tcp + 4, read32(slice.headers, tcp + 4) + skipped);
  // The end of a stream belongs to the last segment, the answer to a mark to the first.
  std::uint8_t flags = std::to_integer<std::uint8_t>(slice.headers[tcp + 13]);
  if (first + count < shape.sizes.segments) flags &= static_cast<std::uint8_t>(~(fin | psh));
  if (first > 0) flags &= static_cast<std::uint8_t>(~cwr);
  slice.headers[tcp + 13] = std::byte{flags};
  // What a device that completes checksums begins with: the pseudo header's sum.
  std::uint32_t sum = tcp_protocol + static_cast<std::uint32_t>(tcp_bytes);
  const std::span<const std::byte> ends(slice.headers.data() + ip_source, 8);
  write16(slice.headers, tcp + 16, internet_sum(ends, sum));
}

}  // namespace

std::uint16_t internet_sum(std::span<const std::byte> bytes, std::uint32_t start) {
  std::uint64_t sum = start;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += read16(bytes, i);
  if (bytes.size() % 2 != 0) sum += byte_at(bytes, bytes.size() - 1) << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::optional<FrameShape> shape_of(const OffloadHeader& net, std::span<const std::byte> frame) {
  if (frame.size() < ethernet + least_ip_header || read16(frame, 12) != 0x0800) return {};
  const std::size_t ip_header = ip_header_bytes(frame);
  if (byte_at(frame, ethernet) >> 4 != 4 || ip_header < least_ip_header) return {};
  if (frame.size() < ethernet + ip_header) return {};
  FrameShape shape;
  std::memcpy(&shape.destination, frame.data() + ip_destination, 4);
  shape.sizes.speaks_ecn = (byte_at(frame, ip_service) & ecn_bits) != 0;
  const auto size = static_cast<std::int64_t>(frame.size());
  const unsigned kind = net.kind & static_cast<unsigned>(~OffloadHeader::ecn);
  if (kind == OffloadHeader::no_segments) {
    shape.headers = ethernet + ip_header;
    shape.payload = frame.size() - shape.headers;
    shape.sizes = {1, size, size, shape.sizes.speaks_ecn};
    return shape;
  }
  if (kind != OffloadHeader::tcp4_segments || net.segment_payload == 0) return {};
  const std::size_t tcp = ethernet + ip_header;
  if (byte_at(frame, ethernet + 9) != tcp_protocol || frame.size() < tcp + least_tcp_header)
    return {};
  const std::size_t tcp_header = (byte_at(frame, tcp + 12) >> 4) * 4;
  if (tcp_header < least_tcp_header || frame.size() < tcp + tcp_header) return {};
  shape.headers = tcp + tcp_header;
  shape.payload = frame.size() - shape.headers;
  shape.segment_payload = net.segment_payload;
  const std::size_t segments =
      std::max<std::size_t>(1, (shape.payload + net.segment_payload - 1) / net.segment_payload);
  shape.sizes.segments = static_cast<int>(segments);
  shape.sizes.full_bytes = static_cast<std::int64_t>(shape.headers + net.segment_payload);
  shape.sizes.last_bytes = static_cast<std::int64_t>(shape.headers + shape.payload -
                                                     (segments - 1) * net.segment_payload);
  return shape;
}

Slice cut(const OffloadHeader& net, std::span<const std::byte> frame, const FrameShape& shape,
          int first, int count, bool marked) {
  Slice slice;
  slice.net = net;
  slice.header_bytes = shape.headers;
  std::copy_n(frame.begin(), shape.headers, slice.headers.begin());
  const auto skipped = static_cast<std::size_t>(first) * shape.segment_payload;
  slice.payload_offset = shape.headers + skipped;
  slice.payload_bytes = shape.payload - skipped;
  const std::size_t ip_header = ip_header_bytes(frame);
  bool changed = marked;
  if (marked) slice.headers[ip_service] |= std::byte{ecn_bits};
  if (count < shape.sizes.segments) {
    slice.payload_bytes =
        std::min(slice.payload_bytes, static_cast<std::size_t>(count) * shape.segment_payload);
    renumber(slice, shape, ip_header, first, count);
    if (first > 0) slice.net.kind &= static_cast<std::uint8_t>(~OffloadHeader::ecn);
    changed = true;
    if (count == 1) {
      slice.net.kind = OffloadHeader::no_segments;
      slice.net.segment_payload = 0;
    }
  }
  if (changed) renew_ip_checksum(slice, ip_header);
  return slice;
}

void corrupt(OffloadHeader& net, std::span<std::byte> packet, std::uint32_t draw) {
  if (net.flags & OffloadHeader::needs_checksum) {
    const std::size_t start = net.checksum_start;
    const std::size_t field = start + net.checksum_offset;
    if (field + 2 <= packet.size()) {
      // The field holds the pseudo header's sum already, and takes part in the sum.
      const auto sum = static_cast<std::uint16_t>(~internet_sum(packet.subspan(start)));
      write16(packet, field, sum == 0 ? 0xffff : sum);
    }
  }
  net = {};
  const std::uint64_t bits = (packet.size() - ethernet) * 8;
  const std::uint64_t bit = (draw * bits) >> 32;
  packet[ethernet + bit / 8] ^= std::byte{static_cast<unsigned char>(1u << (bit % 8))};
}

void set_addresses(Slice& slice, const Mac& to, const Mac& from) {
  std::memcpy(slice.headers.data(), to.data(), to.size());
  std::memcpy(slice.headers.data() + to.size(), from.data(), from.size());
}

}  // namespace orrery::netshape
