#include "netshape/fabric/link_emulation.hh"

#include <gtest/gtest.h>

#include <set>

namespace orrery::netshape {
namespace {

constexpr std::int64_t ms = 1'000'000;

LinkModel shaped(std::int64_t bits_per_second, Duration delay) {
  LinkModel model;
  model.seed = 42;
  model.bits_per_second = bits_per_second;
  model.overhead = 24;
  model.queue_bytes = 1 << 20;
  model.delay = delay;
  return model;
}

PacketSizes plain(std::int64_t bytes = 1514) { return {1, bytes, bytes, false}; }
PacketSizes super(int segments, std::int64_t last = 1514) { return {segments, 1514, last, false}; }

TEST(LinkEmulation, SerialisationThenDelay) {
  LinkEmulation link(shaped(10'000'000, Duration::milliseconds(20)));
  const auto releases = link.enqueue(plain(), {5 * ms});
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_EQ(releases[0].at.ns, 5 * ms + 1'230'400 + 20 * ms);
}

TEST(LinkEmulation, ATrainLeavesAtTheRate) {
  LinkEmulation link(shaped(100'000'000, Duration::milliseconds(1)));
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(link.enqueue(plain(), {0})[0].at.ns, 1 * ms + (i + 1) * 123'040);
}

TEST(LinkEmulation, DropsWhatFindsTheQueueFull) {
  LinkModel model = shaped(100'000'000, {});
  model.queue_bytes = 10 * 1514;
  LinkEmulation link(model);
  int arrived = 0;
  for (int i = 0; i < 50; ++i) arrived += static_cast<int>(link.enqueue(plain(), {0}).size());
  EXPECT_EQ(arrived, 11);
  EXPECT_EQ(link.queue_drops(), 39);
}

TEST(LinkEmulation, ASlowLinkReleasesEachSegmentByItself) {
  LinkEmulation link(shaped(10'000'000, {}));
  const auto releases = link.enqueue(super(5, 166), {0});
  ASSERT_EQ(releases.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(releases[static_cast<std::size_t>(i)].first, i);
    EXPECT_EQ(releases[static_cast<std::size_t>(i)].count, 1);
  }
  EXPECT_EQ(releases[3].at.ns, 4 * 1'230'400);
  EXPECT_EQ(releases[4].at.ns, 4 * 1'230'400 + 190 * 800);
}

TEST(LinkEmulation, AFastLinkReleasesBurstsOfAtMost50Microseconds) {
  LinkEmulation link(shaped(1'000'000'000, {}));  // 12.304 us a segment
  const auto releases = link.enqueue(super(43), {0});
  int next = 0;
  for (const Release& release : releases) {
    EXPECT_EQ(release.first, next);
    next += release.count;
    EXPECT_LE(release.count, 5);
    EXPECT_EQ(release.at.ns, next * 12'304);
  }
  EXPECT_EQ(next, 43);
  EXPECT_EQ(releases.size(), 9u);
}

TEST(LinkEmulation, AnUnshapedLinkKeepsASuperPacketWhole) {
  LinkModel model;
  LinkEmulation link(model);
  const auto releases = link.enqueue(super(43), {7});
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_EQ(releases[0].count, 43);
  EXPECT_EQ(releases[0].at.ns, 7);
}

TEST(LinkEmulation, ASuperPacketIsCutWhereSegmentsAreLost) {
  LinkModel model;
  model.seed = 1;
  model.loss = chance({0.2});
  LinkEmulation link(model);
  std::int64_t arrived = 0;
  for (int i = 0; i < 1000; ++i) {
    std::set<int> here;
    int end = -1;
    for (const Release& release : link.enqueue(super(43), {i})) {
      EXPECT_GT(release.first, end) << "neighbours belong together";
      end = release.first + release.count;
      for (int s = release.first; s < end; ++s) EXPECT_TRUE(here.insert(s).second);
    }
    arrived += static_cast<std::int64_t>(here.size());
  }
  EXPECT_EQ(arrived + link.loss_drops(), 43'000);
  EXPECT_NEAR(static_cast<double>(link.loss_drops()) / 43'000, 0.2, 0.006);
}

// The draws are counted by segments, so offload changes nothing of who is lost.
TEST(LinkEmulation, OffloadDoesNotChangeWhichSegmentsAreLost) {
  LinkModel model;
  model.seed = 5;
  model.loss = chance({0.1});
  LinkEmulation whole(model);
  LinkEmulation single(model);
  std::set<int> by_super, by_one;
  for (const Release& release : whole.enqueue(super(60), {0}))
    for (int i = 0; i < release.count; ++i) by_super.insert(release.first + i);
  for (int i = 0; i < 60; ++i)
    if (!single.enqueue(plain(), {0}).empty()) by_one.insert(i);
  EXPECT_EQ(by_super, by_one);
  EXPECT_LT(by_one.size(), 60u);
}

TEST(LinkEmulation, ACorruptSegmentStandsAlone) {
  LinkModel model;
  model.seed = 2;
  model.corrupt = chance({0.1});
  LinkEmulation link(model);
  int corrupted = 0;
  for (const Release& release : link.enqueue(super(200), {0})) {
    corrupted += release.corrupted;
    if (release.corrupted) {
      EXPECT_EQ(release.count, 1);
    }
  }
  EXPECT_GT(corrupted, 5);
  EXPECT_LT(corrupted, 40);
}

TEST(LinkEmulation, ADuplicateTakesTheLineToo) {
  LinkModel model = shaped(10'000'000, {});
  model.duplicate = chance({1});
  LinkEmulation link(model);
  const auto releases = link.enqueue(plain(), {0});
  ASSERT_EQ(releases.size(), 2u);
  EXPECT_EQ(releases[0].at.ns, 1'230'400);
  EXPECT_EQ(releases[1].at.ns, 2'460'800);
}

TEST(LinkEmulation, AReorderedPacketSkipsTheDelay) {
  LinkModel model = shaped(10'000'000, Duration::milliseconds(50));
  model.reorder = chance({1});
  LinkEmulation link(model);
  EXPECT_EQ(link.enqueue(plain(), {0})[0].at.ns, 1'230'400);
}

LinkModel jittery(bool keep_order) {
  LinkModel model;
  model.seed = 3;
  model.delay = Duration::milliseconds(20);
  model.jitter = Duration::milliseconds(5);
  model.quantiles = quantiles(DelayTable::normal);
  model.keep_order = keep_order;
  return model;
}

TEST(LinkEmulation, JitterKeepsTheOrderIfAsked) {
  LinkEmulation kept(jittery(true));
  LinkEmulation free(jittery(false));
  Instant last_kept, last_free;
  int overtaken = 0;
  for (int i = 0; i < 1000; ++i) {
    const Instant now{i * 100'000};
    const Instant a = kept.enqueue(plain(), now)[0].at;
    const Instant b = free.enqueue(plain(), now)[0].at;
    EXPECT_GE(a, last_kept);
    overtaken += b < last_free;
    last_kept = a;
    last_free = b;
  }
  EXPECT_GT(overtaken, 100);
}

TEST(LinkEmulation, WhatIsOnTheWayKeepsItsTimesThroughAChange) {
  LinkEmulation link(shaped(10'000'000, Duration::milliseconds(20)));
  link.enqueue(plain(), {0});
  link.change(shaped(100'000'000, Duration::milliseconds(1)));
  // Behind the first on the line, then with the new rate and delay.
  EXPECT_EQ(link.enqueue(plain(), {0})[0].at.ns, 1'230'400 + 123'040 + 1 * ms);
}

TEST(LinkEmulation, TheSameSeedAndPacketsGiveTheSameArrivals) {
  const auto run = [](std::uint64_t seed) {
    LinkModel model = jittery(false);
    model.seed = seed;
    model.loss = chance({0.05});
    model.duplicate = chance({0.05});
    model.bits_per_second = 50'000'000;
    model.queue_bytes = 200'000;
    LinkEmulation link(model);
    std::vector<std::int64_t> all;
    for (int i = 0; i < 500; ++i)
      for (const Release& release : link.enqueue(super(1 + i % 4), {i * 300'000}))
        all.insert(all.end(), {release.at.ns, release.first, release.count});
    return all;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace orrery::netshape
