#include "netshape/fabric/line.hh"

#include <gtest/gtest.h>

namespace orrery::netshape {
namespace {

constexpr std::int64_t frame = 1514;

LinkModel model(std::int64_t bits_per_second, std::int64_t queue_bytes) {
  LinkModel model;
  model.bits_per_second = bits_per_second;
  model.overhead = 24;
  model.queue_bytes = queue_bytes;
  return model;
}

TEST(Line, APacketTakesItsCountedBytesAtTheRate) {
  Line line;
  const LinkModel m = model(100'000'000, 1 << 20);
  // 1538 B × 80 ns
  EXPECT_EQ(line.pass(m, frame, false, {1000})->end.ns, 1000 + 123'040);
}

TEST(Line, AFullLineGainsAndLosesNoTime) {
  Line line;
  const LinkModel m = model(3'000'000'000, 1 << 30);  // 4101.33 ns a frame
  Instant end;
  for (int i = 0; i < 3000; ++i) end = line.pass(m, frame, false, {0})->end;
  EXPECT_EQ(end.ns, 3000 * 1538 * 8 / 3);
}

TEST(Line, AnIdleLineBeginsAtOnce) {
  Line line;
  const LinkModel m = model(100'000'000, 1 << 20);
  line.pass(m, frame, false, {0});
  EXPECT_EQ(line.pass(m, frame, false, {1'000'000})->end.ns, 1'123'040);
}

TEST(Line, TheQueueHoldsItsBytesBesideTheOneOnTheLine) {
  Line line;
  const LinkModel m = model(100'000'000, 10 * frame);
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += line.pass(m, frame, false, {0}).has_value();
  EXPECT_EQ(passed, 11);
  EXPECT_EQ(line.waiting_bytes({0}), 10 * frame);
  // One leaves the queue when the first has left the line.
  EXPECT_FALSE(line.pass(m, frame, false, {123'039}));
  EXPECT_TRUE(line.pass(m, frame, false, {123'040}));
  EXPECT_FALSE(line.pass(m, frame, false, {123'040}));
}

TEST(Line, SmallPacketsTakeLittleRoom) {
  Line line;
  const LinkModel m = model(1'000'000, 10 * frame);
  int passed = 0;
  while (line.pass(m, 66, false, {0})) ++passed;
  EXPECT_EQ(passed, 10 * frame / 66 + 1);
}

TEST(Line, WithoutARateNothingWaits) {
  Line line;
  LinkModel m;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(line.pass(m, frame, false, {5})->end.ns, 5);
  EXPECT_EQ(line.waiting_packets({5}), 0);
}

TEST(Line, MarksAboveTheThresholdAndOnlyWhoSpeaksEcn) {
  Line line;
  LinkModel m = model(100'000'000, 100 * frame);
  m.mark_above = 3 * frame;
  std::vector<bool> marks;
  for (int i = 0; i < 8; ++i) marks.push_back(line.pass(m, frame, true, {0})->marked);
  // The first is on the line at once; the fifth finds three waiting.
  EXPECT_EQ(marks, (std::vector<bool>{false, false, false, false, true, true, true, true}));
  EXPECT_FALSE(line.pass(m, frame, false, {0})->marked);
}

TEST(Line, ANewRateHoldsBehindWhatWaits) {
  Line line;
  line.pass(model(100'000'000, 1 << 20), frame, false, {0});
  const auto after = line.pass(model(1'000'000'000, 1 << 20), frame, false, {0});
  EXPECT_EQ(after->end.ns, 123'040 + 12'304);
  LinkModel open;
  EXPECT_EQ(line.pass(open, frame, false, {0})->end.ns, 123'040 + 12'304);
}

TEST(Line, TheRingKeepsItsOrderWhenItGrows) {
  Line line;
  const LinkModel m = model(8'000'000'000, 1 << 30);  // a byte a nanosecond
  std::int64_t now = 0;
  std::int64_t work = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 40; ++i) {
      line.pass(m, 976, false, {now});
      work += 1000;
    }
    now += 20'000;
    EXPECT_EQ(line.waiting_packets({now}), std::max<std::int64_t>(0, (work - now) / 1000 - 1));
  }
}

}  // namespace
}  // namespace orrery::netshape
