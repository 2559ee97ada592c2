#include "emulator/config/starters.hh"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/config/device_profiles.hh"
#include "emulator/config/load.hh"
#include "emulator/plan/run_plan.hh"
#include "tests/emulator/config/fake_catalog.hh"

namespace orrery::config {
namespace {

TEST(Starters, AreTheFilesOfConfigsAndValid) {
  for (const std::string name : {"minimal", "quickstart", "ring", "faults"}) {
    const Starter& each = starter(name);
    EXPECT_EQ(each.text, read_file(std::string(ORRERY_SOURCE_DIR) + "/configs/" + name + ".yaml"));
    EXPECT_FALSE(each.description.empty());
    EXPECT_NE(each.description.front(), '#');
    const Loaded loaded = load_text(name, std::string(each.text), emulator::strategy_catalog());
    EXPECT_EQ(loaded.experiment.name, name);
    EXPECT_TRUE(loaded.warnings.empty());
  }
  EXPECT_EQ(starters().size(), 4u);
}

TEST(Starters, AnUnknownOneNamesThoseThatExist) {
  try {
    starter("quick");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "there is no starter 'quick'; the starters are minimal, quickstart, ring, faults");
  }
}

TEST(DeviceProfiles, EachHasFiguresAndASource) {
  std::set<std::string_view> names;
  for (const DeviceProfile& profile : device_profiles()) {
    EXPECT_TRUE(names.insert(profile.name).second) << profile.name;
    EXPECT_GT(profile.flops.per_second, 0);
    EXPECT_GT(profile.memory_bandwidth.per_second, 0);
    EXPECT_GT(profile.memory.count, 0);
    EXPECT_FALSE(profile.source.empty());
    EXPECT_EQ(find_device_profile(profile.name), &profile);
  }
  for (const char* name :
       {"raspberry-pi-4", "raspberry-pi-5", "jetson-nano", "laptop", "server-core", "ideal"})
    EXPECT_NE(find_device_profile(name), nullptr) << name;
  EXPECT_EQ(find_device_profile("abacus"), nullptr);
}

}  // namespace
}  // namespace orrery::config
