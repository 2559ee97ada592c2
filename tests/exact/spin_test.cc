// While a process in the guest spins nothing else in it runs: who waits for what must be seen from
// outside, in the guest's memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "agents/activity.hh"
#include "base/error.hh"
#include "emulator/uml/guest.hh"
#include "emulator/uml/guest_memory.hh"

namespace orrery::test {
namespace {

std::map<int, std::string> what_nodes_do(const uml::Guest& guest) {
  std::map<int, std::string> texts;
  for (const std::vector<char>& page : uml::guest_pages(guest.pid(), Activity::mark()))
    if (const auto activity = Activity::read(page))
      texts[activity->rank] = activity->describe({"node0", "node1"});
  return texts;
}

TEST(Spin, WhoWaitsForWhatIsSeenFromOutside) {
  const char* kernel = std::getenv("ORRERY_KERNEL");
  ASSERT_NE(kernel, nullptr) << "set ORRERY_KERNEL, as scripts/test.sh does";
  std::string state = std::filesystem::temp_directory_path() / "orrery-spin-XXXXXX";
  ASSERT_NE(::mkdtemp(state.data()), nullptr);
  uml::GuestSpec spec;
  spec.kernel = kernel;
  spec.init = std::filesystem::path(ORRERY_GUEST).parent_path() / "orrery-init";
  spec.state_dir = state;
  spec.argv = {SPIN_GUEST};
  {
    uml::Guest guest(spec);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    std::map<int, std::string> seen;
    while (std::chrono::steady_clock::now() < limit && !guest.poll()) {
      seen = what_nodes_do(guest);
      if (seen[1].find("computing") != std::string::npos &&
          seen[0].find("message 2") != std::string::npos)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    EXPECT_THAT(seen[1], testing::StartsWith("node1 has been computing copy x1234 since "));
    EXPECT_THAT(seen[0], testing::StartsWith("node0 has been waiting since "));
    EXPECT_THAT(seen[0], testing::EndsWith(" s for message 2 on channel 7 from node1"));
  }
  std::filesystem::remove_all(state);
}

}  // namespace
}  // namespace orrery::test
