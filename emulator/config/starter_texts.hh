// The files of configs/ as they were built in; the table itself is made by embed_starters.cmake.
#pragma once

#include <span>
#include <string_view>

namespace orrery::config {

struct StarterText {
  std::string_view name;  ///< the file's, without `.yaml`
  std::string_view text;
};

std::span<const StarterText> starter_texts();

}  // namespace orrery::config
