// orrery-controller RUN_DIR [--links]: the controller of one run, started by `orrery` inside the
// time-travel kernel. With --links it only measures the links, into records/links.bin; where that
// is there already, a run takes the links as checked. Relative paths of sockets keep them below the
// kernel's limit, so it works in RUN_DIR.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hh"
#include "emulator/config/load.hh"
#include "emulator/controller/controller.hh"
#include "emulator/controller/link_check.hh"
#include "netshape/kernel_backend.hh"

namespace {

using namespace orrery;

// What was written is to be seen from outside soon, and to survive a kill.
void write_back_soon() {
  std::ofstream("/proc/sys/vm/dirty_writeback_centisecs") << 50;
  std::ofstream("/proc/sys/vm/dirty_expire_centisecs") << 50;
}

// TCP's share of memory over all connections is a ninth or so by default, and a long fat path asks
// for more: the kernel would clamp its windows. What each may use, its own buffers bound.
void let_tcp_use_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  std::ofstream("/proc/sys/net/ipv4/tcp_mem") << pages << ' ' << pages << ' ' << pages;
}

constexpr const char* links_file = "records/links.bin";

// A name of its own until it is whole: a file cut short is no check.
void check_links(const emulator::RunPlan& plan, netshape::Backend& network) {
  const std::string unfinished = "links.part";
  network.apply(plan.network);
  {
    RecordFileWriter records(unfinished);
    emulator::record_link_checks(network, records);
  }
  std::filesystem::rename(unfinished, links_file);
}

int run(const std::string& run_dir, bool only_links) {
  if (::chdir(run_dir.c_str()) != 0) throw_errno("enter " + run_dir);
  write_back_soon();
  let_tcp_use_memory();
  const auto loaded = config::load("experiment.yaml", emulator::strategy_catalog());
  emulator::RunPlan plan = emulator::plan_run(loaded.experiment);
  plan.spec = run_spec_from_json(nlohmann::json::parse(read_file("spec.json")));
  netshape::KernelBackend network([] { return Instant{emulator::monotonic_ns()}; });
  if (only_links) {
    check_links(plan, network);
    return 0;
  }
  const std::string agent =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "orrery-agent";
  std::filesystem::remove("control.sock");
  emulator::Controller controller(
      plan, network,
      {"records",
       !std::filesystem::exists(links_file),
       "control.sock",
       {agent, "zygote", "spec.json", "--control", "control.sock", "--records", "records"}});
  const bool ok = controller.run();
  std::filesystem::remove("control.sock");
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool only_links = argc == 3 && std::string_view(argv[2]) == "--links";
  if (argc != 2 && !only_links) {
    std::cerr << "orrery-controller RUN_DIR [--links]; start `orrery run` instead\n";
    return 2;
  }
  try {
    return run(argv[1], only_links);
  } catch (const orrery::Error& error) {
    std::cerr << "orrery-controller: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "orrery-controller: " << error.what() << "\n";
    return 1;
  }
}
