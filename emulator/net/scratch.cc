#include "emulator/net/scratch.hh"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/error.hh"
#include "base/fd.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;

constexpr const char* scratch[] = {"/tmp", "/var/tmp", "/run", "/dev/shm"};

}  // namespace

void make_scratch_folders(const std::vector<std::string>& keep) {
  for (const std::string folder : scratch) {
    if (!fs::is_directory(folder)) continue;
    std::map<std::string, FileDescriptor> held;
    for (const std::string& path : keep)
      if (path.starts_with(folder + "/") && fs::is_directory(path))
        held.emplace(path, open_file(path, O_PATH | O_DIRECTORY));
    check_system(::mount("none", folder.c_str(), "tmpfs", 0, "mode=1777"),
                 ("mount a scratch folder on " + folder).c_str());
    // In order, so that one within another comes after it.
    for (const auto& [path, old] : held) {
      fs::create_directories(path);
      const std::string from = "/proc/self/fd/" + std::to_string(old.get());
      check_system(::mount(from.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr),
                   ("show " + path + " again").c_str());
    }
  }
}

std::vector<std::string> folders_of(const std::vector<std::string>& command) {
  std::vector<std::string> folders{fs::current_path()};
  for (const std::string& word : command) {
    if (!word.starts_with("/")) continue;
    folders.push_back(fs::is_directory(word) ? word : fs::path(word).parent_path().string());
  }
  return folders;
}

}  // namespace orrery::net
