#include "netshape/fabric/lateness.hh"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery::netshape {

int Lateness::cell_of(std::int64_t ns) {
  if (ns < parts) return static_cast<int>(ns);
  // 4 or more
  const int power = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ns))) - 1;
  const auto part = static_cast<int>((ns >> (power - 4)) & (parts - 1));
  return std::min(cells - 1, (power - 3) * parts + part);
}

std::int64_t Lateness::upper_end(int cell) {
  if (cell < parts) return cell;
  const int power = cell / parts + 3;
  const std::int64_t width = std::int64_t{1} << (power - 4);
  return (std::int64_t{1} << power) + (cell % parts + 1) * width - 1;
}

void Lateness::add(Duration late) {
  const std::int64_t ns = std::max<std::int64_t>(0, late.ns);
  ++counts_[static_cast<std::size_t>(cell_of(ns))];
  ++count_;
  largest_ = std::max(largest_, ns);
}

Duration Lateness::percentile(double share) const {
  const auto wanted =
      static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_) - 1e-9));
  std::int64_t seen = 0;
  for (int cell = 0; cell < cells; ++cell) {
    seen += counts_[static_cast<std::size_t>(cell)];
    if (seen > 0 && seen >= wanted) return {std::min(upper_end(cell), largest_)};
  }
  return {};
}

}  // namespace orrery::netshape
