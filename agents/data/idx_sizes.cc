#include "agents/data/idx_sizes.hh"

#include <zlib.h>

#include <array>
#include <memory>

#include "base/error.hh"

namespace orrery {
namespace {

constexpr std::uint32_t image_magic = 0x803;

std::uint32_t big_endian(const std::array<unsigned char, 16>& bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24 |
         static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

struct Header {
  std::int64_t images;
  std::int64_t edge;
};

Header read_header(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (!file)
    throw Error("cannot open " + path +
                "; install the package dataset-fashion-mnist, or give workload.path a folder with "
                "the four gzip IDX files");
  std::array<unsigned char, 16> bytes{};
  if (::gzread(file.get(), bytes.data(), bytes.size()) != static_cast<int>(bytes.size()) ||
      big_endian(bytes, 0) != image_magic)
    throw Error(path +
                " is not a gzip IDX file of images; its first four bytes must be 00 00 08 03");
  if (big_endian(bytes, 8) != big_endian(bytes, 12))
    throw Error(path + " holds images that are not square; only square ones are supported");
  return {big_endian(bytes, 4), big_endian(bytes, 8)};
}

}  // namespace

IdxSizes idx_dataset_sizes(const std::string& folder) {
  const Header train = read_header(folder + "/train-images-idx3-ubyte.gz");
  const Header test = read_header(folder + "/t10k-images-idx3-ubyte.gz");
  return {train.images, test.images, train.edge};
}

}  // namespace orrery
