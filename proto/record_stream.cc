#include "proto/record_stream.hh"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hh"

namespace orrery {
namespace {

constexpr std::size_t flush_at = 64 * 1024;

// A varint length at the start of `text`: (length, bytes it took), or bytes 0 if incomplete.
std::pair<std::uint64_t, std::size_t> read_length(std::string_view text) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < text.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (!(byte & 0x80)) return {value, i + 1};
  }
  return {0, 0};
}

}  // namespace

RecordFileWriter::RecordFileWriter(const std::string& path)
    : path_(path), fd_(open_file(path, O_WRONLY | O_CREAT | O_APPEND)) {}

RecordFileWriter::~RecordFileWriter() {
  try {
    flush();
  } catch (const Error&) {
    // A destructor cannot report; the reader sees a stream that ends early and says so.
  }
}

void RecordFileWriter::write(const wire::Record& record) {
  std::array<std::uint8_t, 10> length{};
  const std::string body = record.SerializeAsString();
  const std::uint8_t* end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(body.size(), length.data());
  buffer_.append(reinterpret_cast<const char*>(length.data()),
                 static_cast<std::size_t>(end - length.data()));
  buffer_ += body;
  if (buffer_.size() >= flush_at) flush();
}

void RecordFileWriter::flush() {
  write_all(fd_.get(), buffer_, path_);
  buffer_.clear();
}

RecordFileReader::RecordFileReader(std::string path) : path_(std::move(path)) {}

std::size_t RecordFileReader::poll(const std::function<void(const wire::Record&)>& take) {
  if (!fd_) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return 0;
    if (fd < 0) throw_errno("open " + path_);
    fd_.reset(fd);
  }
  std::size_t count = 0;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t n = ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset_));
    if (n < 0) throw_errno("read " + path_);
    if (n == 0) break;
    offset_ += static_cast<std::uint64_t>(n);
    pending_.append(buffer.data(), static_cast<std::size_t>(n));
    std::string_view rest = pending_;
    for (;;) {
      const auto [length, prefix] = read_length(rest);
      if (prefix == 0 || rest.size() - prefix < length) break;
      wire::Record record;
      if (!record.ParseFromArray(rest.data() + prefix, static_cast<int>(length)))
        throw Error(path_ + " is not a record stream (byte " +
                    std::to_string(offset_ - rest.size()) + "); run it again");
      take(record);
      ++count;
      rest.remove_prefix(prefix + length);
    }
    pending_.erase(0, pending_.size() - rest.size());
  }
  return count;
}

}  // namespace orrery
