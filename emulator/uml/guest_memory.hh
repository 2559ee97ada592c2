// Reads a guest's memory from outside, whatever the guest does. All of it lies in one file, which
// has no name but is open in the kernel's process.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace orrery::uml {

/// The contents of every page that begins with `mark`. Empty if the guest is gone or its memory
/// cannot be read.
std::vector<std::vector<char>> guest_pages(pid_t guest, std::string_view mark);

/// The same in an open file. Its holes are passed over.
std::vector<std::vector<char>> file_pages(int fd, std::string_view mark);

}  // namespace orrery::uml
