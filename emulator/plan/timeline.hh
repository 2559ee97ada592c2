// The written timeline, worked out: what happens at which instant. Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "agents/device.hh"
#include "emulator/config/experiment.hh"
#include "netshape/plan.hh"

namespace orrery::emulator {

/// The process stands still from here / goes on.
struct StopProcess {};
struct ContinueProcess {};
struct KillProcess {};
struct RestartProcess {};
/// Nothing to do at the instant itself: the device's schedule has it.
struct SpeedChange {};
struct ShapeLinks {
  std::vector<netshape::LinkChange> changes;
};

using Action = std::variant<StopProcess, ContinueProcess, KillProcess, RestartProcess, SpeedChange,
                            ShapeLinks>;

struct TimedAction {
  Instant at;
  std::string event;   ///< its name in the file
  std::string type;    ///< "slow", "pause", "kill", "restart", "link"
  std::string target;  ///< a node or a link
  std::string what;    ///< in words
  bool is_end = false;
  Action action;
};

/// In order of time; at one instant in the order of the file, ends before beginnings.
std::vector<TimedAction> expand_timeline(const config::Experiment& experiment);

/// The speed of `node` over the run: product of its stragglers' factors, zero while it is paused.
std::vector<SpeedSchedule::Step> speed_schedule(const config::Experiment& experiment,
                                                const std::string& node);

}  // namespace orrery::emulator
