#include "netshape/fabric/line.hh"

#include <algorithm>

namespace orrery::netshape {
namespace {

constexpr std::int64_t bit_ns = 8'000'000'000;  // a byte's time at 1 bit/s

}  // namespace

void Line::leave(Instant now) {
  while (count_ > 0 && ring_[first_].start <= now) {
    bytes_ -= ring_[first_].bytes;
    first_ = first_ + 1 == ring_.size() ? 0 : first_ + 1;
    --count_;
  }
}

void Line::join(Waiting waiting) {
  if (count_ == ring_.size()) {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    first_ = 0;
    ring_.resize(std::max<std::size_t>(64, 2 * ring_.size()));
  }
  std::size_t at = first_ + count_;
  if (at >= ring_.size()) at -= ring_.size();
  ring_[at] = waiting;
  ++count_;
  bytes_ += waiting.bytes;
}

std::optional<Line::Passage> Line::pass(const LinkModel& model, std::int64_t l2_bytes,
                                        bool speaks_ecn, Instant now) {
  leave(now);
  Passage passage;
  if (model.bits_per_second == 0) {
    // Behind what still waits from the time when there was a rate.
    free_at_ = std::max(free_at_, now);
    passage.end = free_at_;
    return passage;
  }
  const bool must_wait = free_at_ > now;
  if (must_wait) {
    if (bytes_ + l2_bytes > model.queue_bytes) return {};
    passage.marked = speaks_ecn && model.mark_above && bytes_ >= *model.mark_above;
  }
  const Instant start = must_wait ? free_at_ : now;
  if (!must_wait || left_over_of_ != model.bits_per_second) left_over_ = 0;
  left_over_of_ = model.bits_per_second;
  const std::int64_t work = (l2_bytes + model.overhead) * bit_ns + left_over_;
  free_at_ = {start.ns + work / model.bits_per_second};
  left_over_ = work % model.bits_per_second;
  if (must_wait) join({start, l2_bytes});
  passage.end = free_at_;
  return passage;
}

std::int64_t Line::waiting_packets(Instant now) {
  leave(now);
  return static_cast<std::int64_t>(count_);
}

std::int64_t Line::waiting_bytes(Instant now) {
  leave(now);
  return bytes_;
}

}  // namespace orrery::netshape
