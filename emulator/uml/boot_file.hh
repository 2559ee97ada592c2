// What our init is told: a text file, because a kernel command line is short and has no quoting.
//
//   write DIR     mount the host's DIR over itself, writable
//   env NAME=VALUE
//   cwd DIR
//   status FILE   where the exit status goes, in a writable folder
//   arg TEXT      the command, an argument a line; a newline inside is not possible
#pragma once

#include <string>
#include <vector>

namespace orrery::uml {

struct BootFile {
  std::vector<std::string> writable;
  std::vector<std::string> environment;
  std::string cwd;
  std::string status;
  std::vector<std::string> argv;
};

std::string to_text(const BootFile& boot);
/// Throws ValueError for a line that is none of the above.
BootFile parse_boot_file(const std::string& text);

}  // namespace orrery::uml
