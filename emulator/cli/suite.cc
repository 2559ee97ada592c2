#include "emulator/cli/suite.hh"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/cli/profiles.hh"
#include "emulator/cli/progress.hh"
#include "emulator/config/load.hh"
#include "emulator/engine/host.hh"
#include "emulator/exact/exact_run.hh"
#include "emulator/live/live_run.hh"
#include "emulator/metrics/exporter.hh"
#include "emulator/plan/run_plan.hh"
#include "emulator/results/directory.hh"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;
using emulator::EngineRun;
using emulator::RunPlan;

volatile sig_atomic_t interrupted = 0;

// SIGINT, SIGTERM and SIGHUP end the runs in order; a second one ends the program at once.
class InterruptGuard {
 public:
  InterruptGuard() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESETHAND;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  }
};

std::string directory_of(const SuiteOptions& options, std::size_t runs, const std::string& name) {
  return runs == 1 ? options.directory : options.directory + "/" + name;
}

void make_result_directory(const std::string& directory) {
  if (fs::exists(directory) && !fs::is_empty(directory))
    throw Error(directory + " exists and is not empty; choose another with --out", ExitCode::usage);
  fs::create_directories(directory);
}

// As many at a time as there are processors and memory for.
std::size_t exact_jobs(const std::vector<RunPlan>& plans, int wish) {
  std::int64_t largest = 0;
  std::string name;
  for (const RunPlan& plan : plans)
    if (plan.guest_memory.count > largest) {
      largest = plan.guest_memory.count;
      name = plan.spec.run;
    }
  const Bytes available = emulator::available_memory();
  if (available.count < largest)
    throw MachineError("run '" + name + "' needs " + to_string(Bytes{largest}) +
                       " of memory, and the host has " +
                       to_string(Bytes::mib(available.count >> 20)) +
                       " available; use fewer nodes, a smaller model or a smaller objective set");
  const std::int64_t by_memory = available.count / largest;
  const std::int64_t by_processor = wish > 0 ? wish : emulator::processor_count();
  return static_cast<std::size_t>(std::max<std::int64_t>(1, std::min(by_memory, by_processor)));
}

struct Slot {
  std::size_t index;
  std::unique_ptr<RecordSink> observer;
  std::unique_ptr<EngineRun> run;
};

using Start = std::function<std::unique_ptr<EngineRun>(const RunPlan&, const std::string& directory,
                                                       RecordSink* observer)>;

// How runs of one engine are started, and how many at a time.
struct Engine {
  std::size_t jobs = 1;
  Start start;
};

// Throws MachineError if the host cannot do it.
Engine exact_engine(const std::vector<RunPlan>& plans, const SuiteOptions& options) {
  const std::size_t jobs = exact_jobs(plans, options.jobs);
  const emulator::ExactOptions exact{emulator::find_kernel(), options.command_line,
                                     emulator::cache_folder() + "/links", options.measure_links};
  return {jobs, [exact](const RunPlan& plan, const std::string& directory, RecordSink* observer) {
            return std::make_unique<emulator::ExactRun>(plan, directory, exact, observer);
          }};
}

// One at a time: side by side they would take each other's processors.
Engine live_engine(const SuiteOptions& options) {
  const emulator::LiveOptions live{options.command_line, netshape::choose_backend(options.backend),
                                   emulator::lease_folder()};
  return {1, [live](const RunPlan& plan, const std::string& directory, RecordSink* observer) {
            return std::make_unique<emulator::LiveRun>(plan, directory, live, observer);
          }};
}

}  // namespace

SuiteOutcome run_suite(const config::Experiment& experiment, const SuiteOptions& options) {
  ProgressDisplay display(options.quiet);
  std::vector<RunPlan> plans;
  for (const config::Run& run : experiment.runs)
    plans.push_back(emulator::plan_run(experiment.select(run.name)));
  const Engine engine =
      options.engine == "live" ? live_engine(options) : exact_engine(plans, options);
  make_result_directory(options.directory);
  for (RunPlan& plan : plans) apply_profile(plan, options.profile_from, display);
  write_file(options.directory + "/experiment.yaml",
             config::to_yaml(experiment, emulator::strategy_catalog()));

  metrics::Book book;
  std::unique_ptr<metrics::Exporter> exporter;
  if (!options.metrics_address.empty()) {
    exporter = std::make_unique<metrics::Exporter>(book, options.metrics_address);
    display.say("metrics at port " + std::to_string(exporter->port()) + ", /metrics");
  }

  const InterruptGuard guard;
  interrupted = 0;
  SuiteOutcome outcome;
  std::vector<Slot> slots;
  std::size_t next = 0;
  std::vector<std::string> directories;
  for (const RunPlan& plan : plans)
    directories.push_back(directory_of(options, plans.size(), plan.spec.run));

  while (next < plans.size() || !slots.empty()) {
    while (!interrupted && next < plans.size() && slots.size() < engine.jobs) {
      Slot slot{next, book.sink(plans[next].spec.run), nullptr};
      slot.run = engine.start(plans[next], directories[next], slot.observer.get());
      slots.push_back(std::move(slot));
      ++next;
    }
    if (interrupted) {
      for (Slot& slot : slots) slot.run->stop("interrupted");
      next = plans.size();
    }
    std::vector<const EngineRun*> running;
    for (auto slot = slots.begin(); slot != slots.end();) {
      const bool ended = slot->run->poll();
      book.set_host_seconds(slot->run->name(), slot->run->progress().host_seconds);
      if (!ended) {
        running.push_back(slot->run.get());
        ++slot;
        continue;
      }
      if (!slot->run->failure().empty())
        display.say(slot->run->name() + ": " + slot->run->failure());
      slot = slots.erase(slot);
    }
    display.show(running, plans.size() - next);
    if (!slots.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  outcome.interrupted = interrupted != 0;
  std::vector<std::string> written;
  for (const std::string& directory : directories)
    if (fs::exists(directory + "/records.bin")) written.push_back(directory);
  outcome.runs = plans.size() == 1
                     ? std::vector<results::RunSummary>{results::write_results(options.directory)}
                     : results::write_suite(options.directory, experiment.name, written);
  for (const results::RunSummary& run : outcome.runs)
    outcome.failed |= run.verdict == results::Grade::invalid;
  return outcome;
}

}  // namespace orrery::cli
