#include "netshape/fabric/frame.hh"

#include <gtest/gtest.h>

#include "tests/netshape/fabric/frames.hh"

namespace orrery::netshape {
namespace {

using test::tcp_frame;
using test::TcpFrame;
using test::TestFrame;

TEST(Frame, APlainPacketIsOneSegmentOfItsWholeSize) {
  const TestFrame frame = tcp_frame({.payload = 1448});
  const auto shape = shape_of(frame.net, frame.bytes);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->sizes.segments, 1);
  EXPECT_EQ(shape->sizes.bytes(0, 1), 1514);
}

TEST(Frame, ASuperPacketIsCountedAsItsSegmentsWithHeaders) {
  const TestFrame frame = tcp_frame({.payload = 3 * 1448 + 100, .segment_payload = 1448});
  const auto shape = shape_of(frame.net, frame.bytes);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->sizes.segments, 4);
  EXPECT_EQ(shape->sizes.full_bytes, 1514);
  EXPECT_EQ(shape->sizes.last_bytes, 166);
  EXPECT_EQ(shape->sizes.bytes(0, 4), 3 * 1514 + 166);
  EXPECT_EQ(shape->sizes.bytes(0, 3), 3 * 1514);
}

TEST(Frame, WhatIsNotIPv4HasNoShape) {
  TestFrame frame = tcp_frame({});
  frame.bytes[12] = std::byte{0x86};
  frame.bytes[13] = std::byte{0xdd};
  EXPECT_FALSE(shape_of(frame.net, frame.bytes));
  EXPECT_FALSE(shape_of({}, std::vector<std::byte>(20)));
}

TEST(Frame, HeadersThatReachBeyondTheFrameHaveNoShape) {
  TestFrame frame = tcp_frame({.payload = 0, .segment_payload = 1448});
  frame.bytes[34 + 12] = std::byte{0xf0};  // 60 bytes of TCP header, of which 32 are there
  EXPECT_FALSE(shape_of(frame.net, frame.bytes));
  frame.bytes[14] = std::byte{0x4f};
  EXPECT_FALSE(shape_of(frame.net, std::span(frame.bytes).first(40)));
}

// Cuts everything into pieces of `size` and checks that they are what a sender without offload
// would have sent.
void check_cuts(int size) {
  TcpFrame wanted{.payload = 5 * 1000 + 37, .segment_payload = 1000};
  wanted.flags = 0x80 | 0x10 | 0x08 | 0x01;  // CWR, ACK, PSH, FIN
  wanted.service = 0x02;
  const TestFrame frame = tcp_frame(wanted);
  const auto shape = shape_of(frame.net, frame.bytes);
  ASSERT_TRUE(shape);
  std::vector<std::byte> stream;
  for (int first = 0; first < shape->sizes.segments; first += size) {
    const int count = std::min(size, shape->sizes.segments - first);
    const bool last = first + count == shape->sizes.segments;
    const Slice slice = cut(frame.net, frame.bytes, *shape, first, count, false);
    EXPECT_EQ(slice.net.kind,
              count > 1 ? OffloadHeader::tcp4_segments : OffloadHeader::no_segments);
    const auto packet = test::whole(slice, frame.bytes);
    const test::ReadTcp read = test::read_tcp(slice.net, packet);
    EXPECT_EQ(read.ip_length, packet.size() - 14);
    EXPECT_EQ(read.identification, 7 + first);
    EXPECT_EQ(read.sequence, 1000u + 1000u * static_cast<unsigned>(first));
    EXPECT_EQ(read.flags, 0x10 | (first == 0 ? 0x80 : 0) | (last ? 0x09 : 0));
    EXPECT_TRUE(read.ip_checksum_right) << first;
    EXPECT_TRUE(read.tcp_checksum_right) << first;
    stream.insert(stream.end(), read.payload.begin(), read.payload.end());
  }
  EXPECT_EQ(stream, std::vector<std::byte>(frame.bytes.begin() + 66, frame.bytes.end()));
}

TEST(Frame, CutIntoSegments) { check_cuts(1); }
TEST(Frame, CutIntoPairs) { check_cuts(2); }
TEST(Frame, CutUnevenly) { check_cuts(4); }

TEST(Frame, AnUncutFrameIsUnchanged) {
  const TestFrame frame = tcp_frame({.payload = 5000, .segment_payload = 1448});
  const auto shape = shape_of(frame.net, frame.bytes);
  const Slice slice = cut(frame.net, frame.bytes, *shape, 0, shape->sizes.segments, false);
  EXPECT_EQ(test::whole(slice, frame.bytes), frame.bytes);
  EXPECT_EQ(slice.net.segment_payload, 1448);
}

TEST(Frame, AMarkIsCongestionExperiencedWithARightChecksum) {
  const TestFrame frame = tcp_frame({.service = 0x02});
  const auto shape = shape_of(frame.net, frame.bytes);
  EXPECT_TRUE(shape->sizes.speaks_ecn);
  const Slice slice = cut(frame.net, frame.bytes, *shape, 0, 1, true);
  const test::ReadTcp read = test::read_tcp(slice.net, test::whole(slice, frame.bytes));
  EXPECT_EQ(read.service & 0x03, 0x03);
  EXPECT_TRUE(read.ip_checksum_right);
  EXPECT_TRUE(read.tcp_checksum_right);
}

TEST(Frame, CorruptionFlipsOneBitBehindACompletedChecksum) {
  const TestFrame frame = tcp_frame({.payload = 333});
  for (const std::uint32_t draw : {0u, 0x7fffffffu, 0xffffffffu, 0xc0000000u}) {
    std::vector<std::byte> packet = frame.bytes;
    OffloadHeader net = frame.net;
    corrupt(net, packet, draw);
    EXPECT_EQ(net.flags, 0);
    const test::ReadTcp read = test::read_tcp(net, packet);
    EXPECT_FALSE(read.ip_checksum_right && read.tcp_checksum_right) << draw;
    int flipped = 0;
    for (std::size_t i = 0; i < packet.size(); ++i) {
      if (i == 50 || i == 51) continue;  // the checksum, which was completed
      flipped += std::popcount(std::to_integer<unsigned>(packet[i] ^ frame.bytes[i]));
    }
    EXPECT_LE(flipped, 1) << draw;
  }
}

TEST(Frame, TheInternetChecksumOfTheRfcsExample) {
  // RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
  const std::array<std::byte, 8> bytes{std::byte{0x00}, std::byte{0x01}, std::byte{0xf2},
                                       std::byte{0x03}, std::byte{0xf4}, std::byte{0xf5},
                                       std::byte{0xf6}, std::byte{0xf7}};
  EXPECT_EQ(internet_sum(bytes), 0xddf2);
}

}  // namespace
}  // namespace orrery::netshape
