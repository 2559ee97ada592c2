// orrery doctor: one line for each thing that the engines need, and what to do if it is
// lacking.

#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "agents/data/dataset.hh"
#include "base/error.hh"
#include "emulator/cli/command.hh"
#include "emulator/engine/host.hh"
#include "emulator/uml/guest.hh"
#include "netshape/capabilities.hh"

namespace orrery::cli {
namespace {

// Below this Debian's libtorch is using the reference BLAS: some 5 GFLOP/s where OpenBLAS has 100.
constexpr double slow_gemm = 20e9;
// What the smallest runs take.
constexpr Bytes least_memory = Bytes::mib(1536);

struct Examination {
  bool lacking = false;

  void good(const std::string& what) { std::cout << "ok       " << what << "\n"; }
  void warn(const std::string& what) { std::cout << "warning  " << what << "\n"; }
  void lacks(const std::string& what) {
    lacking = true;
    std::cout << "LACKING  " << what << "\n";
  }
  /// Runs a check that throws MachineError or returns what is well.
  template <typename Check>
  void look(const Check& check) {
    try {
      good(check());
    } catch (const Error& error) {
      lacks(error.what());
    }
  }
};

bool in_child(bool (*works)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(works() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string check_processor() {
  utsname info{};
  ::uname(&info);
  if (std::string(info.machine) != "x86_64")
    throw MachineError("processor is " + std::string(info.machine) +
                       "; the exact engine's kernel runs on x86-64 only");
  return "processor: x86-64, " + emulator::processor_name();
}

std::string check_ptrace() {
  if (!in_child([] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; }))
    throw MachineError(
        "ptrace is denied here (a container's seccomp profile, or "
        "kernel.yama.ptrace_scope = 3); allow it, e.g. docker run --cap-add "
        "SYS_PTRACE --security-opt seccomp=unconfined");
  return "ptrace is allowed";
}

std::string check_layout() {
  if (!in_child([] { return ::personality(ADDR_NO_RANDOMIZE) >= 0; }))
    throw MachineError(
        "personality(ADDR_NO_RANDOMIZE) is denied here, so runs would not repeat; "
        "allow it in the container's seccomp profile");
  return "address-space randomisation can be turned off";
}

std::string check_memory() {
  const Bytes available = emulator::available_memory();
  if (available < least_memory)
    throw MachineError("memory: " + to_string(Bytes::mib(available.count >> 20)) +
                       " available; a small run needs " + to_string(least_memory));
  return "memory: " + to_string(Bytes::mib(available.count >> 20)) + " available";
}

std::string check_place() {
  return "the guest's memory file goes to " + uml::memory_folder(least_memory, ".");
}

std::string check_programs() {
  for (const char* name : {"orrery-agent", "orrery-controller", "orrery-init"})
    emulator::sibling_program(name);
  return "programs: complete";
}

std::string check_kernel() {
  const std::string kernel = emulator::built_kernel();
  if (kernel.empty())
    return "kernel: not built yet; the first run or scripts/build-kernel.sh builds it, some "
           "minutes";
  return "kernel: " + kernel;
}

std::string check_data() {
  return "data: fashion-mnist in " + packaged_dataset_folder("fashion-mnist");
}

void check_blas(Examination& examination) {
  const emulator::Finished finished =
      emulator::run_program({emulator::sibling_program("orrery-agent"), "gemm"});
  const double rate = std::strtod(finished.output.c_str(), nullptr);
  if (finished.status != 0 || rate <= 0) {
    examination.lacks("libtorch does not work: " + finished.errors);
    return;
  }
  const std::string text =
      "matrix product: " + std::to_string(static_cast<int>(rate / 1e9)) + " GFLOP/s on one core";
  if (rate < slow_gemm)
    examination.warn(text + "; libtorch is using the reference BLAS: install libopenblas0-pthread");
  else
    examination.good(text);
}

// Not lacking: the exact engine needs none of it.
std::string check_live() {
  const netshape::Capabilities host = netshape::probe();
  if (host.kernel_backend()) return "live engine: with the kernel's netem";
  const std::string why = " (no kernel backend: " + host.why_no_kernel_backend() + ")";
  if (host.fabric_backend()) return "live engine: with the fabric" + why;
  return "live engine: not on this host; no fabric: " + host.why_no_fabric_backend() + why;
}

int doctor() {
  Examination examination;
  examination.look(check_processor);
  examination.look(check_ptrace);
  examination.look(check_layout);
  examination.look(check_memory);
  examination.look(check_place);
  examination.look(check_programs);
  examination.look(check_kernel);
  examination.look(check_data);
  examination.look(check_live);
  if (!examination.lacking) check_blas(examination);
  return static_cast<int>(examination.lacking ? ExitCode::machine_lacks : ExitCode::ok);
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  app.add_subcommand("doctor", "say what this machine lacks for the exact engine")
      ->callback([&chosen] { chosen.action = doctor; });
}

}  // namespace orrery::cli
