#include "base/fd.hh"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.hh"

namespace orrery {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

FileDescriptor open_file(const std::string& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) throw_errno("open " + path);
  return FileDescriptor(fd);
}

void write_all(int fd, std::string_view data, const std::string& what) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_errno("write " + what);
    }
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::string& path) {
  const FileDescriptor fd = open_file(path, O_RDONLY);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_errno("read " + path);
    }
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_file(const std::string& path, std::string_view data) {
  const std::string neighbour = path + ".part";
  {
    const FileDescriptor fd = open_file(neighbour, O_WRONLY | O_CREAT | O_TRUNC);
    write_all(fd.get(), data, neighbour);
  }
  if (::rename(neighbour.c_str(), path.c_str()) != 0) throw_errno("rename to " + path);
}

}  // namespace orrery
