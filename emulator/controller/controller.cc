#include "emulator/controller/controller.hh"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmath>
#include <ctime>
#include <utility>

#include "emulator/controller/link_check.hh"

namespace orrery::emulator {
namespace {

constexpr std::int64_t second = 1'000'000'000;
// Between the last agent's being ready and time zero: long enough that all have heard of it.
constexpr std::int64_t barrier_lead = 20'000'000;
// After a failure, so much emulated time for the others to notice and say what they saw.
constexpr std::int64_t grace = 60 * second;
constexpr std::int64_t start_limit = 600 * second;

// Observations are kept this often at first; then ever more rarely, so that a long run stays small.
constexpr std::int64_t first_period = second / 4;
constexpr int samples_a_period = 200;

std::string exit_text(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * second + t.tv_nsec;
}

Controller::Controller(const RunPlan& plan, netshape::Backend& network, ControllerOptions options)
    : plan_(plan),
      network_(network),
      options_(std::move(options)),
      records_(options_.records_dir + "/controller.bin") {
  ::prctl(PR_SET_TIMERSLACK, 1);  // threads made from here on inherit it
}

Controller::~Controller() = default;

Instant Controller::now() const { return {monotonic_ns() - epoch_ns_}; }

const std::string& Controller::name_of(int rank) const {
  return plan_.spec.nodes.at(static_cast<std::size_t>(rank)).name;
}

int Controller::rank_of(const std::string& node) const {
  for (std::size_t i = 0; i < plan_.spec.nodes.size(); ++i)
    if (plan_.spec.nodes[i].name == node) return static_cast<int>(i);
  return -1;
}

bool Controller::run() {
  wire::Record started;
  started.mutable_run_started()->set_run(plan_.spec.run);
  started.mutable_run_started()->set_strategy(plan_.spec.strategy);
  started.mutable_run_started()->set_seed(plan_.spec.seed);
  for (const NodeSpec& node : plan_.spec.nodes) started.mutable_run_started()->add_nodes(node.name);
  records_.write(started);
  records_.flush();
  try {
    network_.apply(plan_.network);
    if (options_.check_links) record_link_checks(network_, records_, options_.verify);
    records_.flush();
    start_agents();
    std::int64_t period = first_period;
    std::int64_t next_look = epoch_ns_ + period;
    std::int64_t next_stall = epoch_ns_ + plan_.experiment.limits.stall.ns;
    int samples = 0;
    while (!over()) {
      std::int64_t deadline = std::min(next_look, next_stall);
      if (next_action_ < plan_.timeline.size())
        deadline = std::min(deadline, epoch_ns_ + plan_.timeline[next_action_].at.ns);
      if (const auto event = events_.pop(deadline)) {
        handle(*event);
        continue;
      }
      const std::int64_t t = monotonic_ns();
      while (next_action_ < plan_.timeline.size() &&
             epoch_ns_ + plan_.timeline[next_action_].at.ns <= t)
        perform(plan_.timeline[next_action_++]);
      if (t >= next_look) {
        record_counters(now());
        record_lateness();
        heartbeat();
        if (++samples % samples_a_period == 0) period *= 2;
        next_look += period;
      }
      if (t >= next_stall) {
        look_for_stall();
        next_stall += plan_.experiment.limits.stall.ns;
      }
    }
    record_counters(now());
    record_lateness();
    const bool ok = failure_.empty();
    finish(ok, ok ? "the stop rule was reached" : failure_);
    return ok;
  } catch (const std::exception& error) {
    finish(false, error.what());
    return false;
  }
}

void Controller::start_agents() {
  control_ = std::make_unique<ControlServer>(options_.control_socket, events_);
  launcher_ = std::make_unique<ZygoteLauncher>(options_.zygote_command, events_);
  const int n = static_cast<int>(plan_.spec.nodes.size());
  const std::int64_t limit = monotonic_ns() + start_limit;
  const auto wait_until = [&](const char* what, const auto& reached) {
    while (!reached()) {
      const auto event = events_.pop(limit);
      if (!event) throw Error(std::string("agents did not ") + what + " in time");
      handle(*event);
      if (!failure_.empty()) throw Error(failure_);
    }
  };
  const auto all = [&](State state) {
    for (const auto& [rank, agent] : agents_)
      if (agent.state != state) return false;
    return true;
  };
  const auto tell_all = [&](const wire::ToAgent& message) {
    for (int rank = 0; rank < n; ++rank)
      if (!control_->send(rank, message)) throw Error(name_of(rank) + " hung up while starting");
  };
  wait_until("load", [&] { return zygote_ready_; });
  for (int rank = 0; rank < n; ++rank) {
    agents_[rank] = {};
    launcher_->spawn(rank, 0, network_.node_namespace(name_of(rank)));
  }
  wait_until("start", [&] { return all(State::hello); });
  wire::ToAgent connect;
  connect.mutable_connect();
  tell_all(connect);
  wait_until("connect", [&] { return all(State::connected); });
  epoch_ns_ = monotonic_ns() + barrier_lead;
  wire::ToAgent start;
  start.mutable_start()->set_epoch_ns(epoch_ns_);
  tell_all(start);
  for (auto& [rank, agent] : agents_) {
    agent.state = State::running;
    record_node(rank, "running", "");
  }
  records_.flush();
}

void Controller::handle(const Event& event) {
  if (std::holds_alternative<ZygoteReady>(event)) {
    zygote_ready_ = true;
  } else if (std::holds_alternative<ZygoteGone>(event)) {
    if (failure_.empty()) failure_ = "the agents' parent process died; see " + options_.log;
  } else if (const auto* spawned = std::get_if<AgentSpawned>(&event)) {
    agents_[spawned->rank].pid = spawned->pid;
  } else if (const auto* hello = std::get_if<AgentHello>(&event)) {
    Agent& agent = agents_[hello->rank];
    agent.state = State::hello;
    agent.pid = hello->pid;
    if (agent.incarnation > 0) {
      wire::ToAgent connect;
      connect.mutable_connect();
      control_->send(hello->rank, connect);
    }
  } else if (const auto* connected = std::get_if<AgentConnected>(&event)) {
    Agent& agent = agents_[connected->rank];
    agent.state = State::connected;
    if (agent.incarnation > 0) {
      wire::ToAgent start;
      start.mutable_start()->set_epoch_ns(epoch_ns_);
      control_->send(connected->rank, start);
      agent.state = State::running;
      record_node(connected->rank, "running", "restarted");
    }
  } else if (const auto* waiting = std::get_if<AgentWaiting>(&event)) {
    agents_[waiting->rank].waiting = waiting->what;
  } else if (const auto* done = std::get_if<AgentDone>(&event)) {
    if (done->ok) {
      agents_[done->rank].state = State::done;
      record_node(done->rank, "finished", "");
    } else {
      fail(done->rank, done->reason);
    }
  } else if (const auto* exited = std::get_if<AgentExited>(&event)) {
    Agent& agent = agents_[exited->rank];
    if (exited->pid != agent.pid || agent.state == State::done || agent.state == State::failed ||
        agent.state == State::killed)
      return;
    fail(exited->rank, exit_text(exited->status) + " without a word; see " + options_.log);
  }
}

void Controller::fail(int rank, const std::string& reason) {
  agents_[rank].state = State::failed;
  record_node(rank, "failed", reason);
  if (!failure_.empty()) return;
  failure_ = (killed_.empty() ? "" : killed_ + "; ") + name_of(rank) + ": " + reason;
  failed_at_ns_ = monotonic_ns();
}

bool Controller::over() const {
  if (failed_at_ns_ && monotonic_ns() > failed_at_ns_ + grace) return true;
  if (!failure_.empty() && !failed_at_ns_) return true;  // nobody is left to hear from
  bool all_killed = true;
  for (const auto& [rank, agent] : agents_) {
    if (agent.state != State::done && agent.state != State::failed && agent.state != State::killed)
      return false;
    all_killed &= agent.state == State::killed;
  }
  // All dead: over, unless one of them is to be restarted.
  if (all_killed)
    for (std::size_t i = next_action_; i < plan_.timeline.size(); ++i)
      if (plan_.timeline[i].type == "restart") return false;
  return true;
}

void Controller::perform(const TimedAction& action) {
  const int rank = rank_of(action.target);
  const auto agent = agents_.find(rank);
  const auto alive = [&] {
    return agent != agents_.end() && agent->second.pid > 0 &&
           (agent->second.state == State::running || agent->second.state == State::connected ||
            agent->second.state == State::hello);
  };
  Instant actual = now();
  if (std::holds_alternative<StopProcess>(action.action)) {
    if (alive()) ::kill(agent->second.pid, SIGSTOP);
    if (agent != agents_.end()) agent->second.paused = true;
  } else if (std::holds_alternative<ContinueProcess>(action.action)) {
    if (alive()) ::kill(agent->second.pid, SIGCONT);
    if (agent != agents_.end()) agent->second.paused = false;
  } else if (std::holds_alternative<KillProcess>(action.action)) {
    if (alive()) {
      ::kill(agent->second.pid, SIGKILL);
      agent->second.state = State::killed;
      record_node(rank, "killed", action.event);
      killed_ = action.target + " was killed by '" + action.event + "'";
    }
  } else if (std::holds_alternative<RestartProcess>(action.action)) {
    if (agent != agents_.end() && agent->second.state == State::killed) {
      const int incarnation = agent->second.incarnation + 1;
      agent->second = {};
      agent->second.incarnation = incarnation;
      launcher_->spawn(rank, incarnation, network_.node_namespace(action.target));
      record_node(rank, "restarted", action.event);
    }
  } else if (const auto* shape = std::get_if<ShapeLinks>(&action.action)) {
    network_.change(shape->changes, action.at);
    actual = now();
  }
  record_event(action, actual);
}

void Controller::record_counters(Instant t) {
  for (const netshape::LinkCounters& counters : network_.counters()) {
    wire::Record record;
    wire::LinkCounters* entry = record.mutable_link_counters();
    entry->set_t(t.ns);
    entry->set_link(counters.link);
    entry->set_packets(counters.packets);
    entry->set_bytes(counters.wire_bytes);
    entry->set_dropped(counters.queue_drops + counters.loss_drops);
    records_.write(record);
  }
}

void Controller::record_lateness() {
  for (const netshape::ReleaseLateness& late : network_.lateness()) {
    wire::Record record;
    wire::LinkLateness* entry = record.mutable_link_lateness();
    entry->set_link(late.link);
    entry->set_releases(late.releases);
    entry->set_p50_ns(late.p50.ns);
    entry->set_p99_ns(late.p99.ns);
    entry->set_largest_ns(late.largest.ns);
    records_.write(record);
  }
}

void Controller::record_node(int rank, const std::string& state, const std::string& reason) {
  wire::Record record;
  wire::NodeState* entry = record.mutable_node_state();
  entry->set_t(epoch_ns_ ? now().ns : 0);
  entry->set_node(rank);
  entry->set_state(state);
  entry->set_reason(reason);
  records_.write(record);
}

void Controller::record_event(const TimedAction& action, Instant actual) {
  wire::Record record;
  wire::TimelineEvent* entry = record.mutable_timeline_event();
  entry->set_name(action.event);
  entry->set_what(action.what);
  entry->set_planned(action.at.ns);
  entry->set_actual(actual.ns);
  entry->set_target(action.target);
  entry->set_type(action.type);
  entry->set_is_end(action.is_end);
  records_.write(record);
}

void Controller::heartbeat() {
  wire::Record record;
  record.mutable_heartbeat()->set_t(now().ns);
  records_.write(record);
  records_.flush();
}

// A run stands still if no packet has moved since the last look and every agent that lives says
// that it waits. Somebody who computes, or whom the timeline will wake, is a reason to wait on.
void Controller::look_for_stall() {
  std::int64_t packets = 0;
  for (const netshape::LinkCounters& counters : network_.counters()) packets += counters.packets;
  const bool moved = packets != packets_at_last_look_;
  packets_at_last_look_ = packets;
  const bool was_asked = std::exchange(asked_, false);
  if (moved || next_action_ < plan_.timeline.size()) return;
  if (was_asked) {
    std::string who;
    for (const auto& [rank, agent] : agents_) {
      if (agent.state != State::running) continue;
      if (!agent.waiting.starts_with("waiting")) return;
      who += (who.empty() ? "" : "; ") + name_of(rank) + " is " + agent.waiting;
    }
    throw Error("the run stands still: " + who);
  }
  asked_ = true;
  wire::ToAgent ask;
  ask.mutable_ask_waiting();
  for (auto& [rank, agent] : agents_) {
    agent.waiting.clear();
    if (agent.state == State::running) control_->send(rank, ask);
  }
}

void Controller::finish(bool ok, const std::string& reason) {
  wire::Record record;
  wire::RunEnded* ended = record.mutable_run_ended();
  ended->set_t(epoch_ns_ ? now().ns : 0);
  ended->set_ok(ok);
  ended->set_reason(reason);
  records_.write(record);
  records_.flush();
  launcher_.reset();
  control_.reset();
}

}  // namespace orrery::emulator
