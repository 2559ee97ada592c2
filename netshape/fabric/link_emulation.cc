#include "netshape/fabric/link_emulation.hh"

#include <algorithm>

namespace orrery::netshape {

// Joins it to the one before where both would be one super-packet of a receiver.
void LinkEmulation::add(const Release& release) {
  if (!releases_.empty()) {
    Release& before = releases_.back();
    const bool next = before.first + before.count == release.first;
    const bool plain = !before.corrupted && !release.corrupted && before.marked == release.marked;
    if (next && plain && release.at >= before.at &&
        release.at - group_began_ <= model().longest_burst) {
      before.at = release.at;
      before.count += release.count;
      return;
    }
  }
  releases_.push_back(release);
  group_began_ = release.at;
}

void LinkEmulation::send(const PacketSizes& sizes, int segment, const Fate& fate, bool copy) {
  const std::int64_t bytes = sizes.bytes(segment, 1);
  const auto passage = line_.pass(model(), bytes, sizes.speaks_ecn, now_);
  if (!passage) {
    ++queue_drops_;
    return;
  }
  Release release;
  release.at = passage->end + fate.delay;
  release.first = segment;
  release.marked = fate.marked || passage->marked;
  release.corrupted = fate.corrupted && !copy;
  release.corrupt_draw = fate.corrupt_draw;
  if (!fate.hurried) {
    // Without jitter only a change of the delay could bring one packet before another; the kernel's
    // queue lets it overtake then, and so do we.
    if (model().keep_order && model().jitter.ns > 0) release.at = std::max(release.at, last_);
    last_ = std::max(last_, release.at);
  }
  add(release);
}

std::span<const Release> LinkEmulation::enqueue(const PacketSizes& sizes, Instant now) {
  now_ = std::max(now_, now);
  releases_.clear();
  for (int segment = 0; segment < sizes.segments; ++segment) {
    const Fate fate = impairments_.draw(sizes.speaks_ecn);
    if (fate.lost) {
      ++loss_drops_;
      continue;
    }
    send(sizes, segment, fate, false);
    if (fate.duplicated) send(sizes, segment, fate, true);
  }
  return releases_;
}

}  // namespace orrery::netshape
