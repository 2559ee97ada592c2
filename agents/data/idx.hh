// The IDX files of MNIST-like sets: a big-endian header (magic, extents), then unsigned bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

struct IdxFile {
  std::vector<std::int64_t> extents;  ///< samples first
  std::vector<std::uint8_t> values;
};

/// The extents alone, samples first: reads and checks no more than the header.
std::vector<std::int64_t> read_idx_extents(const std::string& path, int dimensions,
                                           const std::string& source);

/// Reads a gzip-compressed IDX file of unsigned bytes in `dimensions` dimensions. Throws Error that
/// names the file, what is wrong with it and what would be right; a missing file also names
/// `source`, where to get it.
IdxFile read_idx(const std::string& path, int dimensions, const std::string& source);

}  // namespace orrery
