// Quantities of the experiment file that only it needs; the rest is base/units.hh.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "base/units.hh"

namespace orrery::config {

/// Floating-point operations a second; infinite for the `ideal` device.
struct FlopRate {
  double per_second = std::numeric_limits<double>::infinity();
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;
};

/// Bytes a second of a memory; infinite for the `ideal` device.
struct ByteRate {
  double per_second = std::numeric_limits<double>::infinity();
  friend constexpr auto operator<=>(ByteRate, ByteRate) = default;
};

/// A multiple of a link's bandwidth-delay product.
struct BdpMultiple {
  double factor = 1;
  friend constexpr auto operator<=>(BdpMultiple, BdpMultiple) = default;
};

/// The room in front of a link's rate limiter, as time at that rate, as a multiple of the BDP, or
/// as bytes.
using Queue = std::variant<Duration, BdpMultiple, Bytes>;

FlopRate parse_flop_rate(std::string_view text);  ///< `4GFLOP/s`, `unlimited`
ByteRate parse_byte_rate(std::string_view text);  ///< `3GB/s`, `unlimited`
Queue parse_queue(std::string_view text);         ///< `50ms`, `1bdp`, `256KiB`

std::string to_string(FlopRate);
std::string to_string(ByteRate);
std::string to_string(const Queue&);

}  // namespace orrery::config
