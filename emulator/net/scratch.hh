// Folders that programs expect to write to, where the root is read-only.
#pragma once

#include <string>
#include <vector>

namespace orrery::net {

/// Puts empty memory file systems over /tmp, /var/tmp, /run and /dev/shm in this process's mount
/// namespace. Of what was there, the folders of `keep` stay to be seen, as they are.
void make_scratch_folders(const std::vector<std::string>& keep);

/// The folders that a command may want of what lies there: where it runs, and those of files that
/// it names.
std::vector<std::string> folders_of(const std::vector<std::string>& command);

}  // namespace orrery::net
