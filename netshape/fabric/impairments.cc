#include "netshape/fabric/impairments.hh"

#include <algorithm>
#include <cmath>

#include "base/philox.hh"

namespace orrery::netshape {
namespace {

// Of the counter's high half: which block of a packet's draws.
constexpr std::uint64_t events = 0;
constexpr std::uint64_t amounts = 1;
constexpr std::uint64_t bursts = 2;
constexpr std::int64_t quantile_unit = 8192;

}  // namespace

Duration Impairments::draw_delay(std::uint32_t word) const {
  const std::size_t size = model_.quantiles.size();
  if (model_.jitter.ns == 0 || size == 0) return model_.delay;
  const std::size_t at = static_cast<std::size_t>((std::uint64_t{word} * size) >> 32);
  const std::int64_t shift = model_.quantiles[at] * model_.jitter.ns / quantile_unit;
  return {std::max<std::int64_t>(0, model_.delay.ns + shift)};
}

Fate Impairments::draw(bool speaks_ecn) {
  Fate fate;
  fate.delay = model_.delay;
  const std::uint64_t number = number_++;
  if (model_.burst_loss) {
    const auto word = philox4x32(model_.seed, bursts, number);
    const bool hit =
        chain_.next(*model_.burst_loss, std::ldexp(word[0], -32), std::ldexp(word[1], -32));
    fate.marked = hit && model_.mark_losses && speaks_ecn;
    fate.lost = hit && !fate.marked;
  }
  if ((model_.loss | model_.duplicate | model_.corrupt | model_.reorder) != 0) {
    const auto word = philox4x32(model_.seed, events, number);
    const bool hit = word[0] < model_.loss;
    fate.marked |= hit && model_.mark_losses && speaks_ecn;
    fate.lost |= hit && !(model_.mark_losses && speaks_ecn);
    fate.duplicated = word[1] < model_.duplicate;
    fate.corrupted = word[2] < model_.corrupt;
    fate.hurried = word[3] < model_.reorder;
  }
  if (fate.corrupted || model_.jitter.ns > 0) {
    const auto word = philox4x32(model_.seed, amounts, number);
    fate.delay = draw_delay(word[0]);
    fate.corrupt_draw = word[1];
  }
  if (fate.hurried) fate.delay = {};
  return fate;
}

}  // namespace orrery::netshape
