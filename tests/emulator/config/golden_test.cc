// Every malformed file of bad/ and the exact text that its reader sees. With ORRERY_UPDATE set in
// the environment the texts are written anew; read the difference before you keep it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/fd.hh"
#include "emulator/config/load.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(ORRERY_SOURCE_DIR) / "tests/emulator/config/bad";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PrintsExactly) {
  const fs::path file = folder / (GetParam() + ".yaml");
  const fs::path expected = folder / (GetParam() + ".expected");
  std::string printed;
  try {
    load_text(file.filename().string(), read_file(file), fake_catalog());
  } catch (const InvalidFile& invalid) {
    printed = invalid.what();
    EXPECT_EQ(invalid.code(), ExitCode::usage);
    EXPECT_GT(invalid.count(), 0u);
  }
  if (std::getenv("ORRERY_UPDATE")) write_file(expected, printed);
  ASSERT_TRUE(fs::exists(expected));
  EXPECT_FALSE(printed.empty()) << "the file was accepted";
  EXPECT_EQ(printed, read_file(expected));
}

INSTANTIATE_TEST_SUITE_P(Bad, Golden, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace orrery::config
