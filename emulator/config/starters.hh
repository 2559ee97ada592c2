// The commented starters of `orrery init`: the files of configs/, built into the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orrery::config {

struct Starter {
  std::string_view name;         ///< `quickstart`
  std::string_view description;  ///< the file's first comment line
  std::string_view text;
};

std::span<const Starter> starters();
/// Throws ValueError that names those which exist.
const Starter& starter(const std::string& name);

}  // namespace orrery::config
