#include "emulator/config/quantities.hh"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/error.hh"

namespace orrery::config {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 5> flop_units{
    {{"FLOP/s", 1}, {"kFLOP/s", 1e3}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}}};
constexpr std::array<Unit, 5> byte_rate_units{
    {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};

constexpr double unlimited = std::numeric_limits<double>::infinity();

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string list(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

struct Number {
  double value;
  std::string_view unit;
};

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

double parse_rate(std::string_view text, std::span<const Unit> units, const std::string& what,
                  const std::string& example) {
  if (text == "unlimited") return unlimited;
  const Number number = split(text, example);
  if (number.value <= 0)
    throw ValueError(quoted(text) + " is not above zero; a " + what + " is, or `unlimited`");
  if (number.unit.empty())
    throw ValueError(quoted(text) + " has no unit; write one of " + list(units) + ", as in " +
                     example);
  for (const Unit& unit : units)
    if (unit.name == number.unit) return number.value * unit.factor;
  throw ValueError(quoted(number.unit) + " is not a unit of a " + what + "; write one of " +
                   list(units) + ", as in " + example);
}

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

/// In the largest unit that the value reaches, if it reads back exactly from there.
std::string rate_text(double value, std::span<const Unit> units) {
  if (std::isinf(value)) return "unlimited";
  for (std::size_t i = units.size(); i-- > 1;) {
    const double scaled = value / units[i].factor;
    if (scaled >= 1 && scaled * units[i].factor == value)
      return number_text(scaled) + std::string(units[i].name);
  }
  return number_text(value) + std::string(units.front().name);
}

}  // namespace

FlopRate parse_flop_rate(std::string_view text) {
  return {parse_rate(text, flop_units, "compute rate", "4GFLOP/s")};
}

ByteRate parse_byte_rate(std::string_view text) {
  return {parse_rate(text, byte_rate_units, "memory rate", "3GB/s")};
}

Queue parse_queue(std::string_view text) {
  const std::string example = "50ms, 1bdp or 256KiB";
  const Number number = split(text, example);
  if (number.value <= 0)
    throw ValueError(quoted(text) + " leaves no room; a queue is above zero, as in " + example);
  if (number.unit == "bdp") return BdpMultiple{number.value};
  if (!number.unit.empty() && number.unit.back() == 'B') return parse_bytes(text);
  try {
    return parse_duration(text);
  } catch (const ValueError&) {
    throw ValueError(quoted(text) +
                     " is no length of a queue; write a time, a multiple of the "
                     "bandwidth-delay product, or bytes, as in " +
                     example);
  }
}

std::string to_string(FlopRate rate) { return rate_text(rate.per_second, flop_units); }
std::string to_string(ByteRate rate) { return rate_text(rate.per_second, byte_rate_units); }

std::string to_string(const Queue& queue) {
  if (const auto* time = std::get_if<Duration>(&queue)) return orrery::to_string(*time);
  if (const auto* bytes = std::get_if<Bytes>(&queue)) return orrery::to_string(*bytes);
  return number_text(std::get<BdpMultiple>(queue).factor) + "bdp";
}

}  // namespace orrery::config
