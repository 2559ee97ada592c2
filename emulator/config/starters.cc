#include "emulator/config/starters.hh"

#include <vector>

#include "base/error.hh"
#include "emulator/config/starter_texts.hh"

namespace orrery::config {

std::span<const Starter> starters() {
  static const std::vector<Starter> all = [] {
    std::vector<Starter> list;
    for (const StarterText& each : starter_texts()) {
      const std::string_view first = each.text.substr(0, each.text.find('\n'));
      list.push_back({each.name, first.substr(first.find_first_not_of("# ")), each.text});
    }
    return list;
  }();
  return all;
}

const Starter& starter(const std::string& name) {
  std::string names;
  for (const Starter& each : starters()) {
    if (each.name == name) return each;
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  throw ValueError("there is no starter '" + name + "'; the starters are " + names);
}

}  // namespace orrery::config
