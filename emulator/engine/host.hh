// What the engines need of the host, looked up in one place.
#pragma once

#include <string>
#include <vector>

#include "base/units.hh"

namespace orrery::emulator {

/// The folder of this program; orrery-agent, orrery-controller and orrery-init lie beside it.
std::string program_folder();
std::string sibling_program(const std::string& name);

/// The time-travel kernel: $ORRERY_KERNEL, else the one that scripts/build-kernel.sh has built or
/// builds now, telling what it does on stderr. Throws MachineError.
std::string find_kernel();
/// The same without building; empty if there is none yet.
std::string built_kernel();

/// The whole environment of everything that computes, in the guest and beside it: one thread, no
/// choice of code by the machine but what is recorded, and an allocator that keeps its memory (page
/// faults are dear in a guest).
std::vector<std::string> compute_environment();

/// What may be kept between runs: $ORRERY_CACHE, else orrery/ in $XDG_CACHE_HOME or ~/.cache.
std::string cache_folder();

/// Where the host's cores are leased to kernels of live runs; one folder for all of them.
std::string lease_folder();

Bytes available_memory();
int processor_count();
std::string processor_name();
std::string system_name();

/// Runs a program to its end with compute_environment(); returns its exit status and what it
/// printed.
struct Finished {
  int status = 0;
  std::string output;
  std::string errors;
};
Finished run_program(const std::vector<std::string>& argv);

}  // namespace orrery::emulator
