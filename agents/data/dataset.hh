// Images and labels, held once as bytes and shared by every agent that is forked afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agents/tensor.hh"

namespace orrery {

/// One split of an image-classification set.
struct ImageSet {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
  std::vector<std::uint8_t> pixels;  ///< samples × height × width
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t pixels_per_image() const { return height * width; }
};

struct Dataset {
  std::string name;
  ImageSet train;
  ImageSet test;
  float mean = 0;       ///< of train pixels / 255
  float deviation = 1;  ///< their standard deviation
};

/// Reads the four gzip IDX files (LeCun's format) of MNIST-like sets from `folder`; `pool` > 1
/// averages pool × pixel squares. Throws Error that names the file, what is wrong with it and what
/// would be right (package or download, expected magic, counts).
Dataset load_idx_dataset(const std::string& name, const std::string& folder, int pool);
/// How large such a set is, by the headers of its files alone. Throws as load_idx_dataset does.
struct DatasetSizes {
  std::int64_t train = 0;  ///< images
  std::int64_t test = 0;
  std::int64_t height = 0;  ///< pixels, not pooled
  std::int64_t width = 0;
};
DatasetSizes idx_dataset_sizes(const std::string& name, const std::string& folder);
/// The folder in which Debian's package puts a set ("fashion-mnist"), or Error naming the package.
std::string packaged_dataset_folder(const std::string& name);

/// Standardised float32 samples: (pixel / 255 − mean) / deviation. Shape: n × sample_shape.
Tensor make_batch(const Dataset& data, const ImageSet& set, std::span<const std::int64_t> indices,
                  const std::vector<std::int64_t>& sample_shape);
/// The same for the range [first, first + n).
Tensor make_batch(const Dataset& data, const ImageSet& set, std::int64_t first, std::int64_t n,
                  const std::vector<std::int64_t>& sample_shape);

}  // namespace orrery
