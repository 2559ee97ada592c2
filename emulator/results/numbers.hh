// Numbers as text, the same on every machine and locale.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::results {

/// Nanoseconds as seconds with exactly nine decimals, from integers: "0.000001500".
std::string seconds_text(std::int64_t ns);
/// The shortest text that reads back as the same double; "nan", "inf", "-inf".
std::string number_text(double value);
/// `value` with `digits` decimals, rounded half to even by the exact value; "–" for NaN.
std::string fixed_text(double value, int digits);
/// "1.50 GB", "812 kB", "17 B": decimal units, three significant digits.
std::string bytes_text(double bytes);
/// "1 h 02 min", "2 min 05 s", "12.3 s", "4.56 ms", "7.8 µs".
std::string duration_text(double seconds);
/// A CSV field: quoted only if it holds a comma, a quote or a line break (RFC 4180).
std::string csv_field(const std::string& text);

}  // namespace orrery::results
