#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace orrery::kernel_test {

/// What a guest printed, and how it ended.
struct Outcome {
  /// Text after `RESULT`: "ok" or "failed: why". Empty if the guest did not get that far.
  std::string result;
  std::map<std::string, std::string> values;
  /// All that the guest and its kernel printed, to show when a test fails.
  std::string output;
  bool exited_cleanly = false;
  std::chrono::duration<double> host_time{};

  /// A reported number; throws std::out_of_range if the guest did not report it.
  [[nodiscard]] std::int64_t number(const std::string& key) const;
};

/// The kernel under test: environment, then build definition, then the cache. Empty if there is
/// none.
std::filesystem::path kernel_path();

/// Boots the kernel with the probe as init and lets it run `check`. `arguments` are added to the
/// kernel's command line. A guest that takes longer than `limit` is killed.
Outcome boot(const std::string& check, const std::vector<std::string>& arguments = {},
             std::chrono::seconds limit = std::chrono::seconds{60});

/// Boots the kernel, lets it run `check` until that has reported something, and kills the kernel's
/// process alone, by SIGKILL. How many of its processes there are five seconds later; they are
/// ended then. -1 if the check reported nothing.
int left_after_a_kill(const std::string& check);

/// A new folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace orrery::kernel_test
