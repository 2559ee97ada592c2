// What our init is told: a text file, because a kernel command line is short and has no quoting.
//
//   write DIR     mount the host's DIR over itself, writable
//   folder NAME HOST   mount the host's HOST at folder_path(NAME), writable
//   env NAME=VALUE
//   cwd DIR
//   status FILE   where the exit status goes, in a writable folder
//   arg TEXT      the command, an argument a line; a newline inside is not possible
#pragma once

#include <string>
#include <vector>

namespace orrery::uml {

/// A host folder under a name that is the same wherever it lies on the host. How long a path is
/// moves what comes after it in memory, and through that, in the end, a run's nanoseconds.
struct Folder {
  std::string name;  ///< without a slash or space
  std::string host;
};

/// Where a guest sees a Folder.
std::string folder_path(const std::string& name);

struct BootFile {
  std::vector<std::string> writable;
  std::vector<Folder> folders;
  std::vector<std::string> environment;
  std::string cwd;
  std::string status;
  std::vector<std::string> argv;
};

std::string to_text(const BootFile& boot);
/// Throws ValueError for a line that is none of the above.
BootFile parse_boot_file(const std::string& text);

}  // namespace orrery::uml
