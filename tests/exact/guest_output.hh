// What a program printed in the time-travel kernel.
#pragma once

#include <map>
#include <string>

namespace orrery::test {

struct Output {
  int status = -1;
  std::string text;
};

/// Runs `program` with `arguments` in the guest, in the environment that agents have.
Output run_in_kernel(const std::string& program, const std::string& arguments = "");

/// Lines "NAME VALUE…" by name.
std::map<std::string, std::string> lines_by_name(const std::string& text);

}  // namespace orrery::test
