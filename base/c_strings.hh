// Texts as execve() and its kin want them.
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Pointers to the texts, and a null after the last. Valid as long as the texts stay as they are.
inline std::vector<char*> c_strings(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace orrery
