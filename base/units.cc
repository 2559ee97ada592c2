#include "base/units.hh"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <span>

#include "base/error.hh"

namespace orrery {
namespace {

struct Unit {
  std::string_view name;
  double factor;  // to the value type's own unit
};

constexpr std::array<Unit, 7> duration_units{
    {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr std::array<Unit, 8> rate_units{{{"bit/s", 1},
                                          {"kbit/s", 1e3},
                                          {"Mbit/s", 1e6},
                                          {"Gbit/s", 1e9},
                                          {"B/s", 8},
                                          {"kB/s", 8e3},
                                          {"MB/s", 8e6},
                                          {"GB/s", 8e9}}};
constexpr std::array<Unit, 7> byte_units{{{"B", 1},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"KiB", 1024},
                                          {"MiB", 1024.0 * 1024},
                                          {"GiB", 1024.0 * 1024 * 1024}}};

struct Number {
  double value;
  std::string_view unit;
};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

Number split(std::string_view text, const std::string& example) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value))
    throw ValueError(quoted(text) + " is not a quantity; write a number and a unit, as in " +
                     example);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return {value, unit};
}

std::string list(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) {
    if (unit.name == "µs") continue;
    if (!names.empty()) names += ", ";
    names += unit.name;
  }
  return names;
}

std::int64_t parse(std::string_view text, std::span<const Unit> units, const char* what,
                   const std::string& example) {
  const Number number = split(text, example);
  if (number.value < 0)
    throw ValueError(quoted(text) + " is negative; a " + what + " starts at zero");
  if (number.unit.empty() && number.value == 0) return 0;
  if (number.unit.empty())
    throw ValueError(quoted(text) + " has no unit; write one of " + list(units) + ", as in " +
                     example);
  for (const Unit& unit : units) {
    if (unit.name != number.unit) continue;
    const double value = number.value * unit.factor;
    if (value > 9.2e18) throw ValueError(quoted(text) + " is too large for 64 bits");
    return static_cast<std::int64_t>(std::llround(value));
  }
  throw ValueError(quoted(number.unit) + " is not a unit of a " + what + "; write one of " +
                   list(units) + ", as in " + example);
}

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

// The largest unit in which the count is a whole number or has at most three decimals, exactly.
std::string format(std::int64_t count, std::span<const Unit> units_ascending) {
  if (count == 0) return "0" + std::string(units_ascending.front().name);
  for (std::size_t i = units_ascending.size(); i-- > 1;) {
    const auto unit = static_cast<std::int64_t>(units_ascending[i].factor);
    const std::int64_t rest = std::abs(count) % unit;
    if (std::abs(count) < unit || rest % (unit / std::gcd(unit, std::int64_t{1000})) != 0) continue;
    const std::int64_t thousandths = rest / (unit / std::gcd(unit, std::int64_t{1000})) *
                                     (1000 / std::gcd(unit, std::int64_t{1000}));
    std::string text = std::to_string(count / unit);
    if (thousandths != 0) {
      std::string decimals = std::to_string(1000 + thousandths).substr(1);
      decimals.erase(decimals.find_last_not_of('0') + 1);
      text += "." + decimals;
    }
    return text + std::string(units_ascending[i].name);
  }
  return std::to_string(count) + std::string(units_ascending.front().name);
}

constexpr std::array<Unit, 4> duration_text{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 4> rate_text{
    {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}}};
constexpr std::array<Unit, 4> byte_text{
    {{"B", 1}, {"KiB", 1024}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1024 * 1024}}};

}  // namespace

Duration BitRate::time_for(std::int64_t bytes) const {
  __extension__ using Wide = __int128;
  const Wide scaled = static_cast<Wide>(bytes) * 8 * 1'000'000'000;
  return {static_cast<std::int64_t>((scaled + bits_per_second - 1) / bits_per_second)};
}

Duration parse_duration(std::string_view text) {
  return {parse(text, duration_units, "duration", "20ms")};
}

BitRate parse_bit_rate(std::string_view text) {
  const std::size_t letter = text.find_first_not_of("0123456789. ");
  if (letter != std::string_view::npos) {
    const std::string_view unit = text.substr(letter);
    // tc reads `mbps` as megabytes, everyone else as megabits.
    if (unit == "mbps" || unit == "kbps" || unit == "gbps" || unit == "Mbps" || unit == "Gbps" ||
        unit == "Kbps" || unit == "bps")
      throw ValueError(quoted(unit) +
                       " is read as bits by some tools and as bytes by others; write Mbit/s or "
                       "MB/s, as in 100Mbit/s");
  }
  return {parse(text, rate_units, "rate", "100Mbit/s")};
}

Bytes parse_bytes(std::string_view text) { return {parse(text, byte_units, "size", "256KiB")}; }

Probability parse_probability(std::string_view text) {
  Number number = split(text, "0.1%");
  if (number.unit == "%")
    number.value /= 100;
  else if (!number.unit.empty())
    throw ValueError(quoted(text) +
                     " is not a probability; write a percentage or a fraction, as in "
                     "0.1% or 0.001");
  if (number.value < 0 || number.value > 1)
    throw ValueError(quoted(text) + " is outside 0% to 100%; write e.g. 0.1%");
  return {number.value};
}

std::string to_string(Duration d) { return format(d.ns, duration_text); }
std::string to_string(BitRate r) { return format(r.bits_per_second, rate_text); }
std::string to_string(Bytes b) { return format(b.count, byte_text); }
std::string to_string(Probability p) {
  const double rounded = std::round(p.value * 100 * 1e9) / 1e9;
  return number_text(rounded) + "%";
}

}  // namespace orrery
