#include "emulator/uml/guest_memory.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fd.hh"

namespace orrery::uml {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page_size = 4096;
constexpr std::size_t chunk_pages = 256;

}  // namespace

std::vector<std::vector<char>> file_pages(int fd, std::string_view mark) {
  std::vector<std::vector<char>> found;
  std::vector<char> chunk(chunk_pages * page_size);
  for (off_t at = 0;;) {
    at = ::lseek(fd, at, SEEK_DATA);
    if (at < 0) return found;  // nothing but a hole until the end
    at -= at % static_cast<off_t>(page_size);
    const ssize_t n = ::pread(fd, chunk.data(), chunk.size(), at);
    if (n < static_cast<ssize_t>(page_size)) return found;
    for (std::size_t page = 0; page + page_size <= static_cast<std::size_t>(n); page += page_size) {
      const std::string_view bytes(chunk.data() + page, page_size);
      if (bytes.starts_with(mark)) found.emplace_back(bytes.begin(), bytes.end());
    }
    at += n;
  }
}

std::vector<std::vector<char>> guest_pages(pid_t guest, std::string_view mark) {
  std::error_code failed;
  std::string memory;
  off_t largest = 0;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(guest) + "/fd", failed)) {
    struct stat info {};
    if (::stat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_nlink > 0 || info.st_size <= largest) continue;
    memory = entry.path();
    largest = info.st_size;
  }
  if (memory.empty()) return {};
  const FileDescriptor file(::open(memory.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? file_pages(file.get(), mark) : std::vector<std::vector<char>>{};
}

}  // namespace orrery::uml
