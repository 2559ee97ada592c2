#include "emulator/cli/progress.hh"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>

namespace orrery::cli {
namespace {

using namespace std::chrono_literals;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 100;
}

std::string line_of(const emulator::EngineRun& run) {
  const emulator::Progress& p = run.progress();
  std::ostringstream text;
  text.precision(1);
  text << std::fixed << run.name() << ": ";
  if (!p.started)
    text << "starting";
  else
    text << p.emulated.in_seconds() << " s emulated";
  text << " in " << p.host_seconds << " s";
  if (!p.phase.empty()) {
    text << ", " << p.phase << " " << p.step;
    text.precision(4);
    if (!std::isnan(p.loss)) text << ", loss " << p.loss;
  }
  return text.str();
}

}  // namespace

ProgressDisplay::ProgressDisplay(bool quiet)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressDisplay::~ProgressDisplay() { erase(); }

void ProgressDisplay::erase() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

void ProgressDisplay::say(const std::string& line) {
  if (quiet_) return;
  erase();
  std::cerr << line << std::endl;
}

void ProgressDisplay::show(const std::vector<const emulator::EngineRun*>& running,
                           std::size_t waiting) {
  const auto now = std::chrono::steady_clock::now();
  if (quiet_ || running.empty() || now - last_ < (terminal_ ? 200ms : 10s)) return;
  last_ = now;
  std::string line;
  for (const emulator::EngineRun* run : running)
    line += (line.empty() ? "" : " | ") + line_of(*run);
  if (waiting > 0) line += " | " + std::to_string(waiting) + " to come";
  if (!terminal_) {
    std::cerr << line << std::endl;
    return;
  }
  const std::size_t width = terminal_width() - 1;
  if (line.size() > width) line.resize(width);
  std::cerr << "\r\033[K" << line << std::flush;
  drawn_ = true;
}

}  // namespace orrery::cli
