// How large a packaged set is, without unpacking it: only the files' headers are read.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

struct IdxSizes {
  std::int64_t train = 0;  ///< images
  std::int64_t test = 0;
  std::int64_t edge = 0;  ///< pixels
};

/// Throws Error that names the file and what is wrong with it.
IdxSizes idx_dataset_sizes(const std::string& folder);

}  // namespace orrery
