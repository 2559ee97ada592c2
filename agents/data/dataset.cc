#include "agents/data/dataset.hh"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "agents/data/idx.hh"
#include "base/error.hh"

namespace orrery {
namespace {

constexpr std::int64_t mnist_classes = 10;

struct Package {
  const char* set;
  const char* package;
  const char* folder;
};
constexpr Package packages[] = {
    {"fashion-mnist", "dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"},
};

std::string where_to_get(const std::string& name) {
  for (const Package& entry : packages) {
    if (name == entry.set) return "apt install " + std::string(entry.package) + " provides it";
  }
  return "the four gzip IDX files of " + name + " belong in this folder";
}

/// Averages pool × pool squares, rounded to the nearest byte.
std::vector<std::uint8_t> pooled(const std::vector<std::uint8_t>& pixels, std::int64_t height,
                                 std::int64_t width, std::int64_t pool) {
  const std::int64_t rows = height / pool;
  const std::int64_t columns = width / pool;
  const std::int64_t images = static_cast<std::int64_t>(pixels.size()) / (height * width);
  const std::uint32_t area = static_cast<std::uint32_t>(pool * pool);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(images * rows * columns));
  std::uint8_t* out = result.data();
  for (std::int64_t image = 0; image < images; ++image) {
    const std::uint8_t* in = pixels.data() + image * height * width;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        std::uint32_t sum = area / 2;
        for (std::int64_t y = 0; y < pool; ++y) {
          const std::uint8_t* line = in + (row * pool + y) * width + column * pool;
          for (std::int64_t x = 0; x < pool; ++x) sum += line[x];
        }
        *out++ = static_cast<std::uint8_t>(sum / area);
      }
    }
  }
  return result;
}

std::string image_file(const std::string& folder, const std::string& split) {
  return folder + "/" + split + "-images-idx3-ubyte.gz";
}

ImageSet load_split(const std::string& name, const std::string& folder, const std::string& prefix,
                    int pool) {
  const std::string image_path = image_file(folder, prefix);
  const std::string label_path = folder + "/" + prefix + "-labels-idx1-ubyte.gz";
  // Labels first: they are small, so that most mistakes show at once.
  IdxFile labels = read_idx(label_path, 1, where_to_get(name));
  IdxFile images = read_idx(image_path, 3, where_to_get(name));

  if (labels.extents[0] != images.extents[0]) {
    throw Error(label_path + ": holds " + std::to_string(labels.extents[0]) + " labels; " +
                image_path + " holds " + std::to_string(images.extents[0]) +
                " images, and there must be one label for each");
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [](std::uint8_t label) { return label >= mnist_classes; });
  if (bad != labels.values.end()) {
    throw Error(label_path + ": label " + std::to_string(bad - labels.values.begin()) + " is " +
                std::to_string(*bad) + "; labels are 0 to " + std::to_string(mnist_classes - 1));
  }
  const std::int64_t height = images.extents[1];
  const std::int64_t width = images.extents[2];
  if (pool > 1 && (height % pool != 0 || width % pool != 0)) {
    throw Error(image_path + ": images of " + std::to_string(height) + " x " +
                std::to_string(width) + " cannot be pooled by " + std::to_string(pool) +
                "; a pool divides both edges");
  }

  ImageSet set;
  set.height = height / pool;
  set.width = width / pool;
  set.classes = mnist_classes;
  set.pixels = pool > 1 ? pooled(images.values, height, width, pool) : std::move(images.values);
  set.labels = std::move(labels.values);
  return set;
}

/// Pixel value → standardised float.
std::array<float, 256> standardised(const Dataset& data) {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = (static_cast<float>(i) / 255.0f - data.mean) / data.deviation;
  }
  return table;
}

Tensor batch_tensor(const ImageSet& set, std::int64_t n,
                    const std::vector<std::int64_t>& sample_shape) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  Tensor batch(std::move(shape));
  if (n < 0 || batch.count() != n * set.pixels_per_image()) {
    throw std::logic_error("a sample of another shape than an image of " +
                           std::to_string(set.height) + " x " + std::to_string(set.width));
  }
  return batch;
}

void check_range(const ImageSet& set, std::int64_t first, std::int64_t n) {
  if (first < 0 || first + n > set.size()) {
    throw std::out_of_range("image " + std::to_string(first < 0 ? first : first + n - 1) + " of " +
                            std::to_string(set.size()));
  }
}

}  // namespace

Dataset load_idx_dataset(const std::string& name, const std::string& folder, int pool) {
  if (pool < 1) throw std::logic_error("a pool is at least 1");
  Dataset data;
  data.name = name;
  data.test = load_split(name, folder, "t10k", pool);
  data.train = load_split(name, folder, "train", pool);
  if (data.train.height != data.test.height || data.train.width != data.test.width) {
    throw Error(folder + ": test images are " + std::to_string(data.test.height) + " x " +
                std::to_string(data.test.width) + ", training images " +
                std::to_string(data.train.height) + " x " + std::to_string(data.train.width) +
                "; both must be of one size");
  }

  // Integer sums are exact, whatever the order.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint8_t pixel : data.train.pixels) {
    sum += pixel;
    squares += static_cast<std::uint64_t>(pixel) * pixel;
  }
  const double count = static_cast<double>(data.train.pixels.size());
  const double mean = static_cast<double>(sum) / count;
  const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
  data.mean = static_cast<float>(mean / 255);
  // A set of one grey has no deviation to divide by.
  data.deviation = variance > 0 ? static_cast<float>(std::sqrt(variance) / 255) : 1.0f;
  return data;
}

DatasetSizes idx_dataset_sizes(const std::string& name, const std::string& folder) {
  const auto train = read_idx_extents(image_file(folder, "train"), 3, where_to_get(name));
  const auto test = read_idx_extents(image_file(folder, "t10k"), 3, where_to_get(name));
  return {train[0], test[0], train[1], train[2]};
}

std::string packaged_dataset_folder(const std::string& name) {
  std::string known;
  for (const Package& entry : packages) {
    known += (known.empty() ? "" : ", ") + std::string(entry.set);
    if (name != entry.set) continue;
    struct stat status {};
    if (::stat(entry.folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
      throw MachineError("data set " + name + " is not installed; apt install " + entry.package);
    }
    return entry.folder;
  }
  throw ValueError("no package is known for data set \"" + name + "\"; known: " + known);
}

Tensor make_batch(const Dataset& data, const ImageSet& set, std::span<const std::int64_t> indices,
                  const std::vector<std::int64_t>& sample_shape) {
  Tensor batch = batch_tensor(set, static_cast<std::int64_t>(indices.size()), sample_shape);
  const std::array<float, 256> table = standardised(data);
  const std::int64_t pixels = set.pixels_per_image();
  float* out = batch.data();
  for (const std::int64_t index : indices) {
    check_range(set, index, 1);
    const std::uint8_t* in = set.pixels.data() + index * pixels;
    out = std::transform(in, in + pixels, out, [&](std::uint8_t pixel) { return table[pixel]; });
  }
  return batch;
}

Tensor make_batch(const Dataset& data, const ImageSet& set, std::int64_t first, std::int64_t n,
                  const std::vector<std::int64_t>& sample_shape) {
  check_range(set, first, n);
  Tensor batch = batch_tensor(set, n, sample_shape);
  const std::array<float, 256> table = standardised(data);
  const std::int64_t pixels = set.pixels_per_image();
  const std::uint8_t* in = set.pixels.data() + first * pixels;
  std::transform(in, in + n * pixels, batch.data(),
                 [&](std::uint8_t pixel) { return table[pixel]; });
  return batch;
}

}  // namespace orrery
