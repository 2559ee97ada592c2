// Quantities with units. A figure without its unit never crosses a function boundary in Orrery.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

/// A span of emulated time, in nanoseconds; 64 bits reach 292 years.
struct Duration {
  std::int64_t ns = 0;

  static constexpr Duration nanoseconds(std::int64_t v) { return {v}; }
  static constexpr Duration microseconds(std::int64_t v) { return {v * 1'000}; }
  static constexpr Duration milliseconds(std::int64_t v) { return {v * 1'000'000}; }
  /// Rounds to the nearest nanosecond.
  static constexpr Duration seconds(double v) {
    return {static_cast<std::int64_t>(v * 1e9 + (v < 0 ? -0.5 : 0.5))};
  }
  constexpr double in_seconds() const { return static_cast<double>(ns) * 1e-9; }
  constexpr double in_milliseconds() const { return static_cast<double>(ns) * 1e-6; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator*(Duration a, double k) { return seconds(a.in_seconds() * k); }
  constexpr Duration& operator+=(Duration b) {
    ns += b.ns;
    return *this;
  }
};

/// An instant of emulated time: nanoseconds since the barrier at which a run starts.
struct Instant {
  std::int64_t ns = 0;

  constexpr double in_seconds() const { return static_cast<double>(ns) * 1e-9; }
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.ns + d.ns}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
};

/// Bits a second.
struct BitRate {
  std::int64_t bits_per_second = 0;

  static constexpr BitRate mbit(double v) { return {static_cast<std::int64_t>(v * 1e6 + 0.5)}; }
  constexpr double bytes_per_second() const { return static_cast<double>(bits_per_second) / 8.0; }
  /// The time that `bytes` take on a line of this rate, rounded up to a nanosecond.
  Duration time_for(std::int64_t bytes) const;
  friend constexpr auto operator<=>(BitRate, BitRate) = default;
};

struct Bytes {
  std::int64_t count = 0;

  static constexpr Bytes kib(std::int64_t v) { return {v * 1024}; }
  static constexpr Bytes mib(std::int64_t v) { return {v * 1024 * 1024}; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
};

/// A probability in [0, 1]; written as `0.1%` or as a fraction.
struct Probability {
  double value = 0;
  friend constexpr auto operator<=>(Probability, Probability) = default;
};

/// The text forms of the experiment file. A number without a unit, an unknown unit and an ambiguous
/// one (`mbps`) throw ValueError, whose text says what would be right.
Duration parse_duration(std::string_view text);  ///< `20ms`, `1.5s`, `250us`, `10ns`, `2min`, `1h`
BitRate parse_bit_rate(std::string_view text);   ///< `100Mbit/s`, `12.5MB/s`, `1Gbit/s`
Bytes parse_bytes(std::string_view text);        ///< `256KiB`, `1GiB`, `1500B`, `10MB` (decimal)
Probability parse_probability(std::string_view text);  ///< `0.1%`, `0.001`

/// Shortest exact text that parses back to the same value.
std::string to_string(Duration);
std::string to_string(BitRate);
std::string to_string(Bytes);
std::string to_string(Probability);

}  // namespace orrery
