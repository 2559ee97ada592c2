#include "agents/data/dataset.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "base/error.hh"
#include "base/fd.hh"

namespace orrery {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string labels_file(std::uint32_t magic, std::uint32_t count, const std::string& values) {
  return big_endian(magic) + big_endian(count) + values;
}

std::string images_file(std::uint32_t magic, std::uint32_t count, std::uint32_t height,
                        std::uint32_t width, const std::string& values) {
  return big_endian(magic) + big_endian(count) + big_endian(height) + big_endian(width) + values;
}

/// A good little set, of which each test spoils one file.
class Idx : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "idx_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    std::string pixels;
    for (int i = 0; i < 3 * 16; ++i) pixels += static_cast<char>(i * 5);
    write("train-images-idx3-ubyte.gz", images_file(0x803, 3, 4, 4, pixels));
    write("train-labels-idx1-ubyte.gz", labels_file(0x801, 3, std::string("\x00\x09\x05", 3)));
    write("t10k-images-idx3-ubyte.gz", images_file(0x803, 1, 4, 4, std::string(16, '\x64')));
    write("t10k-labels-idx1-ubyte.gz", labels_file(0x801, 1, std::string("\x03", 1)));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string& name) const { return folder + "/" + name; }

  void write(const std::string& name, const std::string& content) const {
    gzFile file = ::gzopen(path(name).c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(::gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
              static_cast<int>(content.size()));
    ASSERT_EQ(::gzclose(file), Z_OK);
  }

  std::string complaint(int pool = 1) const {
    try {
      load_idx_dataset("little", folder, pool);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  std::string folder;
};

TEST_F(Idx, ReadsASet) {
  const Dataset data = load_idx_dataset("little", folder, 1);
  EXPECT_EQ(data.name, "little");
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_EQ(data.train.height, 4);
  EXPECT_EQ(data.train.classes, 10);
  EXPECT_EQ(data.train.pixels[17], 85);
  EXPECT_EQ(data.train.labels[1], 9);
  EXPECT_EQ(data.test.size(), 1);
  // Pixels are 0, 5, …, 235.
  EXPECT_NEAR(data.mean, 117.5 / 255, 1e-6);
  EXPECT_NEAR(data.deviation, 5 * std::sqrt((48.0 * 48 - 1) / 12) / 255, 1e-6);
}

TEST_F(Idx, SizesComeFromTheHeaders) {
  const DatasetSizes sizes = idx_dataset_sizes("little", folder);
  EXPECT_EQ(sizes.train, 3);
  EXPECT_EQ(sizes.test, 1);
  EXPECT_EQ(sizes.height, 4);
  EXPECT_EQ(sizes.width, 4);
  // What follows a header is not looked at; the header is, as when all is read.
  const std::string name = path("train-images-idx3-ubyte.gz");
  const std::string whole = read_file(name);
  write_file(name, whole.substr(0, 5));
  try {
    idx_dataset_sizes("little", folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), complaint());
  }
}

TEST_F(Idx, PoolsByAverage) {
  const Dataset data = load_idx_dataset("little", folder, 2);
  EXPECT_EQ(data.train.height, 2);
  EXPECT_EQ(data.train.pixels_per_image(), 4);
  // Pixels 0, 5, 20, 25 average 12.5, which rounds up.
  EXPECT_EQ(data.train.pixels[0], 13);
  EXPECT_EQ(data.test.pixels, std::vector<std::uint8_t>(4, 100));
}

TEST_F(Idx, PoolThatDoesNotDivide) {
  EXPECT_EQ(complaint(3), path("t10k-images-idx3-ubyte.gz") +
                              ": images of 4 x 4 cannot be pooled by 3; a pool divides both edges");
}

TEST_F(Idx, MissingFile) {
  std::filesystem::remove(path("train-labels-idx1-ubyte.gz"));
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") +
                             ": there is no such file; the four gzip IDX files of little belong in "
                             "this folder");
  try {
    load_idx_dataset("fashion-mnist", folder, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("apt install dataset-fashion-mnist"));
    EXPECT_EQ(error.code(), ExitCode::machine_lacks);
  }
}

TEST_F(Idx, CutGzip) {
  const std::string name = path("train-images-idx3-ubyte.gz");
  const std::string whole = read_file(name);
  // Cut anywhere, also within the trailer, where all the data have come.
  for (const std::size_t size : {whole.size() - 1, whole.size() - 8, whole.size() / 2}) {
    write_file(name, whole.substr(0, size));
    EXPECT_EQ(complaint(), name +
                               ": the gzip data end too early; the file was cut: install or "
                               "download it again")
        << size << " of " << whole.size();
  }
}

TEST_F(Idx, DamagedGzip) {
  const std::string name = path("train-images-idx3-ubyte.gz");
  std::string whole = read_file(name);
  whole[whole.size() - 6] = static_cast<char>(whole[whole.size() - 6] ^ 0x55);  // its checksum
  write_file(name, whole);
  EXPECT_THAT(complaint(), HasSubstr("the gzip data are damaged ("));
}

TEST_F(Idx, NotGzipAndEmpty) {
  const std::string name = path("train-images-idx3-ubyte.gz");
  write_file(name, images_file(0x803, 3, 4, 4, std::string(48, 'x')));
  EXPECT_EQ(complaint(), name + ": is not compressed by gzip; a gzip IDX file is needed");
  write_file(name, "");
  EXPECT_THAT(complaint(), HasSubstr(name + ": "));
  std::filesystem::remove(name);
  std::filesystem::create_directory(name);
  EXPECT_THAT(complaint(), HasSubstr(name + ": "));
}

TEST_F(Idx, ShortHeader) {
  write("train-labels-idx1-ubyte.gz", "abc");
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") +
                             ": holds 3 bytes; an IDX header of 8 bytes is needed");
}

TEST_F(Idx, WrongMagic) {
  write("train-labels-idx1-ubyte.gz", labels_file(0x803, 3, "abc"));
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") +
                             ": begins with 0x00000803; an IDX file of bytes in 1 dimension begins "
                             "with 0x00000801");
}

TEST_F(Idx, TooFewValues) {
  write("train-images-idx3-ubyte.gz", images_file(0x803, 3, 4, 4, std::string(47, 'x')));
  EXPECT_EQ(complaint(), path("train-images-idx3-ubyte.gz") +
                             ": holds 47 values; its header promises 3 x 4 x 4 = 48");
}

TEST_F(Idx, TrailingBytes) {
  write("train-labels-idx1-ubyte.gz", labels_file(0x801, 3, std::string(4, '\x01')));
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") +
                             ": goes on after its values; its header promises 3 = 3 bytes");
}

TEST_F(Idx, HeaderThatPromisesTheWorld) {
  write("train-images-idx3-ubyte.gz", images_file(0x803, 0xffffffff, 0xffffffff, 0xffffffff, "x"));
  EXPECT_THAT(complaint(), EndsWith("at most 4294967296 are possible"));
  // Large but possible: refused without the memory that it asks for.
  write("train-images-idx3-ubyte.gz", images_file(0x803, 1u << 20, 64, 64, "x"));
  EXPECT_THAT(complaint(), HasSubstr("holds 1 values; its header promises 1048576 x 64 x 64"));
  write("train-images-idx3-ubyte.gz", images_file(0x803, 3, 0, 4, ""));
  EXPECT_THAT(complaint(), EndsWith("says that it holds 3 x 0; no extent may be 0"));
}

TEST_F(Idx, CountsThatDiffer) {
  write("train-labels-idx1-ubyte.gz", labels_file(0x801, 2, std::string(2, '\x01')));
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") + ": holds 2 labels; " +
                             path("train-images-idx3-ubyte.gz") +
                             " holds 3 images, and there must be one label for each");
}

TEST_F(Idx, LabelThatIsNoClass) {
  write("train-labels-idx1-ubyte.gz", labels_file(0x801, 3, std::string("\x01\x0a\x02", 3)));
  EXPECT_EQ(complaint(), path("train-labels-idx1-ubyte.gz") + ": label 1 is 10; labels are 0 to 9");
}

TEST_F(Idx, TestImagesOfAnotherSize) {
  write("t10k-images-idx3-ubyte.gz", images_file(0x803, 1, 2, 4, std::string(8, 'x')));
  EXPECT_EQ(complaint(), folder +
                             ": test images are 2 x 4, training images 4 x 4; both must be of "
                             "one size");
}

TEST_F(Idx, BatchesAreStandardisedInAnyOrder) {
  const Dataset data = load_idx_dataset("little", folder, 1);
  const std::vector<std::int64_t> order{2, 0};
  const Tensor batch = make_batch(data, data.train, order, {1, 4, 4});
  EXPECT_EQ(batch.shape(), (std::vector<std::int64_t>{2, 1, 4, 4}));
  EXPECT_FLOAT_EQ(batch.values()[0], (160.0f / 255 - data.mean) / data.deviation);
  EXPECT_FLOAT_EQ(batch.values()[17], (5.0f / 255 - data.mean) / data.deviation);

  const Tensor range = make_batch(data, data.train, 1, 2, {16});
  EXPECT_FLOAT_EQ(range.values()[16], batch.values()[0]);
  double sum = 0;
  const Tensor all = make_batch(data, data.train, 0, 3, {16});
  for (const float value : all.values()) sum += static_cast<double>(value);
  EXPECT_NEAR(sum / 48, 0, 1e-5);
  EXPECT_EQ(make_batch(data, data.train, 3, 0, {16}).count(), 0);
}

TEST_F(Idx, BatchesOutOfRange) {
  const Dataset data = load_idx_dataset("little", folder, 1);
  EXPECT_THROW(make_batch(data, data.train, 2, 2, {16}), std::out_of_range);
  const std::vector<std::int64_t> wrong{-1};
  EXPECT_THROW(make_batch(data, data.train, wrong, {16}), std::out_of_range);
  EXPECT_THROW(make_batch(data, data.train, 0, 2, {15}), std::logic_error);
}

TEST(PackagedDataset, UnknownNamesTheKnown) {
  try {
    packaged_dataset_folder("fasion-mnist");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "no package is known for data set \"fasion-mnist\"; known: fashion-mnist");
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(PackagedDataset, FashionMnist) {
  std::string folder;
  try {
    folder = packaged_dataset_folder("fashion-mnist");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Dataset data = load_idx_dataset("fashion-mnist", folder, 2);
  EXPECT_EQ(data.train.size(), 60'000);
  EXPECT_EQ(data.test.size(), 10'000);
  EXPECT_EQ(data.train.height, 14);
  std::array<int, 10> count{};
  for (const std::uint8_t label : data.train.labels) ++count[label];
  for (const int n : count) EXPECT_EQ(n, 6000);
  EXPECT_NEAR(data.mean, 0.286, 0.003);
}

}  // namespace
}  // namespace orrery
