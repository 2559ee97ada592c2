// An owned file descriptor.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Opens with O_CLOEXEC; throws SystemError that names the path.
FileDescriptor open_file(const std::string& path, int flags, unsigned mode = 0644);
/// Writes all of it, through EINTR and short writes.
void write_all(int fd, std::string_view data, const std::string& what);
/// What comes from a pipe until its other end is closed, or it fails.
std::string read_to_end(int fd);
std::string read_file(const std::string& path);
/// Writes to a neighbour and renames it, so that a reader never sees half a file.
void write_file(const std::string& path, std::string_view data);

}  // namespace orrery
