#include "agents/data/idx.hh"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <system_error>

#include "base/error.hh"

namespace orrery {
namespace {

/// More than any MNIST-like set has; a header that asks for more is damaged.
constexpr std::int64_t most_values = std::int64_t{1} << 32;

struct CloseGzip {
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};

class GzipReader {
 public:
  GzipReader(const std::string& path, const std::string& source) : path_(path) {
    errno = 0;
    file_.reset(::gzopen(path.c_str(), "rb"));
    if (!file_) {
      const int error = errno;
      if (error == ENOENT) throw MachineError(path + ": there is no such file; " + source);
      throw SystemError("open " + path, error);
    }
    ::gzbuffer(file_.get(), 1u << 17);
  }

  /// Reads up to `wanted.size()` bytes; fewer at the end of the file.
  std::size_t read(std::span<std::uint8_t> wanted) {
    std::size_t done = 0;
    while (done < wanted.size()) {
      const std::size_t part = std::min<std::size_t>(wanted.size() - done, 1u << 20);
      const int n = ::gzread(file_.get(), wanted.data() + done, static_cast<unsigned>(part));
      if (n < 0) fail();
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done < wanted.size()) {
      // A cut file ends like any other, but zlib remembers that its trailer is missing.
      int code = Z_OK;
      ::gzerror(file_.get(), &code);
      if (code != Z_OK && code != Z_STREAM_END) fail();
    }
    return done;
  }

  bool is_plain() const { return ::gzdirect(file_.get()) == 1; }

  [[noreturn]] void wrong(const std::string& what, const std::string& right) const {
    throw Error(path_ + ": " + what + "; " + right);
  }

 private:
  [[noreturn]] void fail() const {
    int code = Z_OK;
    const char* text = ::gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) {
      wrong("the gzip data end too early", "the file was cut: install or download it again");
    }
    if (code == Z_ERRNO) {
      wrong("cannot be read: " + std::generic_category().message(errno),
            "a readable gzip file is needed");
    }
    wrong(std::string("the gzip data are damaged (") + text + ")",
          "install or download the file again");
  }

  std::string path_;
  std::unique_ptr<gzFile_s, CloseGzip> file_;
};

std::int64_t big_endian(const std::uint8_t* bytes) {
  return (std::int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
}

std::string hexadecimal(std::int64_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08llx", static_cast<unsigned long long>(value));
  return text;
}

struct Header {
  std::vector<std::int64_t> extents;
  std::int64_t count = 1;
  std::string text;  ///< the extents, "60000 x 28 x 28"
};

Header read_header(GzipReader& reader, int dimensions) {
  std::uint8_t bytes[4 * 5];
  const std::size_t size = 4 * (1 + static_cast<std::size_t>(dimensions));
  const std::size_t got = reader.read({bytes, size});
  if (reader.is_plain()) reader.wrong("is not compressed by gzip", "a gzip IDX file is needed");
  if (got < size) {
    reader.wrong("holds " + std::to_string(got) + " bytes",
                 "an IDX header of " + std::to_string(size) + " bytes is needed");
  }
  // The third byte is the type of a value (8: unsigned byte), the fourth the number of dimensions.
  const std::int64_t magic = big_endian(bytes);
  const std::int64_t expected = 0x800 + dimensions;
  if (magic != expected) {
    reader.wrong("begins with " + hexadecimal(magic),
                 "an IDX file of bytes in " + std::to_string(dimensions) + " dimension" +
                     (dimensions == 1 ? "" : "s") + " begins with " + hexadecimal(expected));
  }
  Header header;
  for (int i = 0; i < dimensions; ++i) {
    const std::int64_t extent = big_endian(bytes + 4 * (i + 1));
    header.extents.push_back(extent);
    header.text += (header.text.empty() ? "" : " x ") + std::to_string(extent);
    if (extent == 0) reader.wrong("says that it holds " + header.text, "no extent may be 0");
    // Checked at each step, so that the product cannot overflow.
    if (extent > most_values / header.count) {
      reader.wrong("says that it holds " + header.text + " values",
                   "at most " + std::to_string(most_values) + " are possible");
    }
    header.count *= extent;
  }
  return header;
}

}  // namespace

std::vector<std::int64_t> read_idx_extents(const std::string& path, int dimensions,
                                           const std::string& source) {
  GzipReader reader(path, source);
  return read_header(reader, dimensions).extents;
}

IdxFile read_idx(const std::string& path, int dimensions, const std::string& source) {
  GzipReader reader(path, source);
  const auto [header_extents, count, extents] = read_header(reader, dimensions);
  IdxFile file{header_extents, {}};

  // Memory grows with the data that come, not with what a damaged header promises.
  constexpr std::int64_t piece = std::int64_t{1} << 24;
  while (static_cast<std::int64_t>(file.values.size()) < count) {
    const std::size_t have = file.values.size();
    const auto part =
        static_cast<std::size_t>(std::min(piece, count - static_cast<std::int64_t>(have)));
    if (have == 0) file.values.reserve(part);
    file.values.resize(have + part);
    const std::size_t n = reader.read({file.values.data() + have, part});
    if (n < part) {
      reader.wrong("holds " + std::to_string(have + n) + " values",
                   "its header promises " + extents + " = " + std::to_string(count));
    }
  }
  std::uint8_t extra = 0;
  if (reader.read({&extra, 1}) != 0) {
    reader.wrong("goes on after its values",
                 "its header promises " + extents + " = " + std::to_string(count) + " bytes");
  }
  file.values.shrink_to_fit();
  return file;
}

}  // namespace orrery
