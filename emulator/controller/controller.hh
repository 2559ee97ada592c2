// The controller of one run, wherever it runs: in the time-travel kernel or beside it.
//
// network up → links checked → agents forked → connected → barrier → timeline → all done →
// counters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/controller/control_server.hh"
#include "emulator/controller/launcher.hh"
#include "emulator/plan/run_plan.hh"
#include "netshape/backend.hh"
#include "netshape/verify.hh"
#include "proto/record_stream.hh"

namespace orrery::emulator {

struct ControllerOptions {
  std::string records_dir;     ///< records go to RECORDS_DIR/controller.bin and node-*.bin
  bool check_links = true;     ///< false: they were checked, and their records are there
  std::string control_socket;  ///< path of the Unix socket
  std::vector<std::string> zygote_command;
  netshape::VerifyOptions verify;  ///< how well the links are to be as asked
  std::string log = "guest.log";   ///< where to look for what agents printed
};

class Controller {
 public:
  Controller(const RunPlan& plan, netshape::Backend& network, ControllerOptions options);
  ~Controller();
  /// Returns whether the run ended as its stop rule says. What went wrong is in the records.
  bool run();

 private:
  enum class State { starting, hello, connected, running, done, killed, failed };
  struct Agent {
    State state = State::starting;
    int pid = -1;
    int incarnation = 0;
    bool paused = false;
    std::string waiting;  ///< its last answer
  };

  void start_agents();
  void handle(const Event& event);
  void fail(int rank, const std::string& reason);
  void perform(const TimedAction& action);
  void record_counters(Instant t);
  void record_lateness();
  void record_node(int rank, const std::string& state, const std::string& reason);
  void record_event(const TimedAction& action, Instant actual);
  void heartbeat();
  void look_for_stall();
  bool over() const;
  void finish(bool ok, const std::string& reason);
  int rank_of(const std::string& node) const;
  const std::string& name_of(int rank) const;
  Instant now() const;

  const RunPlan& plan_;
  netshape::Backend& network_;
  ControllerOptions options_;
  RecordFileWriter records_;
  EventQueue events_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<ZygoteLauncher> launcher_;
  std::map<int, Agent> agents_;
  std::int64_t epoch_ns_ = 0;
  std::size_t next_action_ = 0;
  std::string failure_;  ///< the first
  std::string killed_;   ///< who was, in words
  std::int64_t failed_at_ns_ = 0;
  std::int64_t packets_at_last_look_ = -1;
  bool asked_ = false;
  bool zygote_ready_ = false;
};

/// Emulated time in the time-travel kernel, wall time outside: CLOCK_MONOTONIC, ns.
std::int64_t monotonic_ns();

}  // namespace orrery::emulator
