// Counter-based random numbers: a draw is a pure function of (key, counter), so a result depends on
// no thread, node, order or engine.
//
// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011:
// Philox4x32-10.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "base/hash.hh"

namespace orrery {

/// One block of four words for a 64-bit key and a 128-bit counter.
constexpr std::array<std::uint32_t, 4> philox4x32(std::uint64_t key, std::uint64_t hi,
                                                  std::uint64_t lo) {
  std::array<std::uint32_t, 4> c{
      static_cast<std::uint32_t>(lo), static_cast<std::uint32_t>(lo >> 32),
      static_cast<std::uint32_t>(hi), static_cast<std::uint32_t>(hi >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0];
    const std::uint64_t p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// A stream of draws: key = (seed, name), high counter = `sequence` (e.g. a block's own move
/// number), low counter = the draw's number.
class Philox {
 public:
  Philox(std::uint64_t seed, std::string_view name, std::uint64_t sequence = 0)
      : key_(hash_name(name) ^ (seed * 0x9E3779B97F4A7C15ull)), sequence_(sequence) {}

  std::uint32_t next_u32() {
    if (used_ == 4) {
      block_ = philox4x32(key_, sequence_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t next_u64() {
    const std::uint64_t high = next_u32();
    return (high << 32) | next_u32();
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n) without bias worth naming (n < 2^32; multiply-shift on 64 bits).
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next_u64() >> 32) * n) >> 32);
  }
  /// Standard normal, Box-Muller; the second of each pair is dropped, so draws stay countable.
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t key_;
  std::uint64_t sequence_;
  std::uint64_t counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;
};

}  // namespace orrery
