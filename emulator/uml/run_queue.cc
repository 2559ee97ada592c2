#include "emulator/uml/run_queue.hh"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace orrery::uml {
namespace {

namespace fs = std::filesystem;

std::optional<pid_t> pid_of(const fs::path& folder) {
  const std::string name = folder.filename();
  pid_t pid = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// The second figure of /proc/PID/schedstat: ns on a run queue without running (Linux,
// Documentation/scheduler/sched-stats.rst).
std::optional<std::int64_t> waited_ns(const fs::path& folder) {
  std::ifstream file(folder / "schedstat");
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;  // it has ended, or no such account is kept
  return waited;
}

}  // namespace

double RunQueueWait::sample() {
  std::map<pid_t, std::int64_t> seen;
  std::int64_t more = 0;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/proc", failed)) {
    const std::optional<pid_t> pid = pid_of(entry.path());
    if (!pid || ::getpgid(*pid) != group_) continue;
    const std::optional<std::int64_t> waited = waited_ns(entry.path());
    if (!waited) continue;
    const auto before = waited_ns_.find(*pid);
    if (before != waited_ns_.end() && *waited > before->second) more += *waited - before->second;
    seen[*pid] = *waited;
  }
  waited_ns_ = std::move(seen);
  return static_cast<double>(more) * 1e-9;
}

}  // namespace orrery::uml
