// What a person sees while runs go on, on stderr: one line that renews itself on a terminal, a
// plain line now and then otherwise.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "emulator/engine/engine_run.hh"

namespace orrery::cli {

class ProgressDisplay {
 public:
  explicit ProgressDisplay(bool quiet);
  ~ProgressDisplay();
  /// A line that stays.
  void say(const std::string& line);
  void show(const std::vector<const emulator::EngineRun*>& running, std::size_t waiting);

 private:
  void erase();

  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace orrery::cli
