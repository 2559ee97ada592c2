// Writing and reading record streams.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.hh"
#include "proto/record.pb.h"

namespace orrery {

/// Where records go. Implementations: a file, a control stream, a vector in tests.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void write(const wire::Record& record) = 0;
};

/// Appends to a file; each write() reaches the kernel before it returns unless buffered.
class RecordFileWriter : public RecordSink {
 public:
  explicit RecordFileWriter(const std::string& path);
  ~RecordFileWriter() override;
  /// Buffers up to 64 KiB; flush() empties the buffer.
  void write(const wire::Record& record) override;
  void flush();

 private:
  std::string path_;
  FileDescriptor fd_;
  std::string buffer_;
};

/// Reads a stream that may still be growing: poll() hands over what has become complete since.
class RecordFileReader {
 public:
  explicit RecordFileReader(std::string path);
  /// Returns how many records were read. A missing file counts as empty. Throws Error for a stream
  /// that is not one.
  std::size_t poll(const std::function<void(const wire::Record&)>& take);
  /// Bytes at the end that do not make a whole record (a cut run).
  std::size_t incomplete_bytes() const { return pending_.size(); }

 private:
  std::string path_;
  FileDescriptor fd_;
  std::string pending_;
  std::uint64_t offset_ = 0;
};

}  // namespace orrery
