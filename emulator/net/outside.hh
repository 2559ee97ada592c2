// The half of `netshape` on the host: boots a time-travel kernel and shows what it prints.
#pragma once

#include <string>
#include <vector>

namespace orrery::net {

struct GuestOptions {
  std::string memory = "1GiB";
  std::vector<std::string> writable;  ///< host folders that the command may write to
};

/// Runs `netshape ARGUMENTS` in a time-travel kernel, in this folder, and passes on what it prints
/// as it comes. Returns its exit status; 130 if interrupted.
int run_in_guest(const std::vector<std::string>& arguments, const GuestOptions& options);

}  // namespace orrery::net
