// How late things happened, as percentiles: counted in cells that are 1/16 of their value wide, so
// that a reading is within 6 % and counting costs no memory.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.hh"

namespace orrery::netshape {

class Lateness {
 public:
  /// Early counts as on time.
  void add(Duration late);
  std::int64_t count() const { return count_; }
  /// At least this share of all was at most so late: the upper end of a cell. 0 of nothing.
  Duration percentile(double share) const;
  Duration largest() const { return {largest_}; }

 private:
  // Values below 16 have a cell each; from there on 16 cells a power of two.
  static constexpr int parts = 16;
  static constexpr int cells = parts * 60;
  static int cell_of(std::int64_t ns);
  static std::int64_t upper_end(int cell);

  std::array<std::int64_t, cells> counts_{};
  std::int64_t count_ = 0;
  std::int64_t largest_ = 0;
};

}  // namespace orrery::netshape
