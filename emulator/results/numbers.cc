#include "emulator/results/numbers.hh"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace orrery::results {
namespace {

std::string two_digits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

// Three significant digits, no exponent, for 0 ≤ value < 1000.
std::string three_digits(double value) {
  return fixed_text(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

std::string seconds_text(std::int64_t ns) {
  const bool negative = ns < 0;
  const std::uint64_t size =
      negative ? ~static_cast<std::uint64_t>(ns) + 1 : static_cast<std::uint64_t>(ns);
  std::string fraction = std::to_string(size % 1'000'000'000);
  fraction.insert(0, 9 - fraction.size(), '0');
  return (negative ? "-" : "") + std::to_string(size / 1'000'000'000) + "." + fraction;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string fixed_text(double value, int digits) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  std::array<char, 400> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::fixed, digits);
  return {buffer.data(), result.ptr};
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (std::isnan(bytes)) return "–";
  if (bytes < 999.5) return fixed_text(bytes, 0) + " B";
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return three_digits(bytes) + " " + units[unit];
}

std::string duration_text(double seconds) {
  if (std::isnan(seconds)) return "–";
  if (seconds < 0) return "-" + duration_text(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return fixed_text(seconds * 1e9, 0) + " ns";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return std::to_string(whole / 60) + " min " + two_digits(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + two_digits(whole % 3600 / 60) + " min";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace orrery::results
