// Names and texts as numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace orrery {

/// FNV-1a, 64 bits: turns a name into a key.
constexpr std::uint64_t hash_name(std::string_view text,
                                  std::uint64_t basis = 0xcbf29ce484222325ull) {
  for (const char c : text) {
    basis ^= static_cast<unsigned char>(c);
    basis *= 0x100000001b3ull;
  }
  return basis;
}

/// 16 hexadecimal digits.
inline std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace orrery
