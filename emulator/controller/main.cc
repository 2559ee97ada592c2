// orrery-controller RUN_DIR: the controller of one run, started by `orrery`, inside the time-travel
// kernel or (--live) beside it. With --links it only measures the links, into records/links.bin;
// where that is there already, a run takes the links as checked. Relative paths of sockets keep
// them below the kernel's limit, so it works in RUN_DIR.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "emulator/config/load.hh"
#include "emulator/controller/controller.hh"
#include "emulator/controller/link_check.hh"
#include "netshape/open_backend.hh"
#include "netshape/user_namespace.hh"

namespace {

using namespace orrery;

struct Arguments {
  std::string run_dir;
  bool only_links = false;
  bool live = false;
  std::string backend = "kernel";
  std::string leases;
};

// What was written is to be seen from outside soon, and to survive a kill.
void write_back_soon() {
  std::ofstream("/proc/sys/vm/dirty_writeback_centisecs") << 50;
  std::ofstream("/proc/sys/vm/dirty_expire_centisecs") << 50;
}

// The host is not ours to set up as the time-travel kernel is; but namespaces have to be made.
void prepare_host() {
  const pid_t parent = ::getppid();
  if (!netshape::enter_user_namespace()) return;
  // The kernel has forgotten it with the change of credentials.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);
}

constexpr const char* links_file = "records/links.bin";

// A name of its own until it is whole: a file cut short is no check.
void check_links(const emulator::RunPlan& plan, netshape::Backend& network) {
  const std::string unfinished = "links.part";
  network.apply(plan.network);
  {
    RecordFileWriter records(unfinished);
    emulator::record_link_checks(network, records, {});
  }
  std::filesystem::rename(unfinished, links_file);
}

emulator::ControllerOptions options_of(const Arguments& arguments) {
  const std::string agent =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "orrery-agent";
  emulator::ControllerOptions options;
  options.records_dir = "records";
  options.check_links = !std::filesystem::exists(links_file);
  options.control_socket = "control.sock";
  options.zygote_command = {agent,          "zygote",    "spec.json", "--control",
                            "control.sock", "--records", "records"};
  if (arguments.live) {
    options.zygote_command.insert(options.zygote_command.end(), {"--leases", arguments.leases});
    options.verify = netshape::wall_time_options();
    options.log = "live.log";
  }
  return options;
}

int run(const Arguments& arguments) {
  if (::chdir(arguments.run_dir.c_str()) != 0) throw_errno("enter " + arguments.run_dir);
  if (arguments.live)
    prepare_host();
  else
    write_back_soon();
  const auto loaded = config::load("experiment.yaml", emulator::strategy_catalog());
  emulator::RunPlan plan = emulator::plan_run(loaded.experiment);
  plan.spec = run_spec_from_json(nlohmann::json::parse(read_file("spec.json")));
  const auto kind =
      arguments.backend == "fabric" ? netshape::BackendKind::fabric : netshape::BackendKind::kernel;
  const auto network =
      netshape::open_backend(kind, [] { return Instant{emulator::monotonic_ns()}; });
  if (arguments.only_links) {
    check_links(plan, *network);
    return 0;
  }
  std::filesystem::remove("control.sock");
  emulator::Controller controller(plan, *network, options_of(arguments));
  const bool ok = controller.run();
  std::filesystem::remove("control.sock");
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Orrery's controller of one run. Start `orrery run` instead."};
  Arguments arguments;
  app.add_option("run_dir", arguments.run_dir)->required();
  app.add_flag("--links", arguments.only_links, "only measure the links");
  app.add_flag("--live", arguments.live, "by this host's clock");
  app.add_option("--backend", arguments.backend)->check(CLI::IsMember({"kernel", "fabric"}));
  app.add_option("--leases", arguments.leases, "folder of core leases");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  }
  try {
    return run(arguments);
  } catch (const Error& error) {
    std::cerr << "orrery-controller: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "orrery-controller: " << error.what() << "\n";
    return static_cast<int>(ExitCode::run_failed);
  }
}
