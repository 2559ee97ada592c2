#include "agents/activity.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/fd.hh"

namespace orrery {
namespace {

/// What somebody outside of this process would see: all of its pages that begin with the mark.
std::vector<Activity> seen() {
  std::vector<Activity> found;
  std::ifstream maps("/proc/self/maps");
  std::ifstream memory("/proc/self/mem", std::ios::binary);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    char mode[5] = "";
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> mode;
    if (mode[0] != 'r' || mode[1] != 'w') continue;
    // A sanitizer's shadow: terabytes, and nothing of ours.
    if (end - begin > (std::uintptr_t{1} << 32)) continue;
    for (std::uintptr_t page = begin; page < end; page += 4096) {
      std::vector<char> bytes(4096);
      memory.seekg(static_cast<std::streamoff>(page));
      memory.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      memory.clear();
      if (const auto activity = Activity::read(bytes)) found.push_back(*activity);
    }
  }
  return found;
}

std::string text() {
  const auto all = seen();
  return all.size() == 1 ? all[0].describe({"n0", "n1", "n2"})
                         : std::to_string(all.size()) + " pages";
}

TEST(ActivityPage, SaysFromOutsideWhatANodeDoes) {
  ActivityPage page(1, 0);
  page.computing(candidates_kernel(250, 150), Instant{1'250'000'000});
  EXPECT_EQ(text(), "n1 has been computing candidates x250x150 since 1.25 s");
  const Source sources[] = {{0, 2}, {2, 7}};
  const std::int64_t numbers[] = {5, 1};
  page.waiting(sources, numbers, Instant{2'000'000'000});
  EXPECT_EQ(text(),
            "n1 has been waiting since 2 s for message 5 on channel 2 from n0 or message 1 on "
            "channel 7 from n2");
  page.sending(2, 3, Instant{2'500'000'000});
  EXPECT_EQ(text(), "n1 has been sending to n2 on channel 3 since 2.5 s");
  page.sleeping(Instant{3'000'000'000});
  EXPECT_EQ(text(), "n1 has been asleep until its kernel ends at 3 s");
  page.own_code(Instant{3'000'000'000});
  EXPECT_EQ(text(), "n1 has been in its strategy's own code since 3 s");
}

TEST(ActivityPage, IsForgottenAtItsEnd) {
  { const ActivityPage page(0, 0); }
  EXPECT_TRUE(seen().empty());
}

TEST(ActivityPage, OnlyAWholePageIsRead) {
  EXPECT_FALSE(Activity::read(std::vector<char>(4096)).has_value());
  const std::string_view mark = Activity::mark();
  EXPECT_FALSE(Activity::read(std::vector<char>(mark.begin(), mark.end())).has_value());
}

}  // namespace
}  // namespace orrery
