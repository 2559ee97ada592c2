// orrery-guest: runs any unmodified command in the time-travel kernel.
//
//   orrery-guest [--kernel FILE] [--mem 1GiB] [--write DIR]… -- COMMAND…

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/uml/guest.hh"

namespace {

std::string neighbour(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Run a command in the time-travel kernel of the exact engine."};
  std::string kernel = std::getenv("ORRERY_KERNEL") ? std::getenv("ORRERY_KERNEL") : "";
  std::string memory = "512MiB";
  orrery::uml::GuestSpec spec;
  app.add_option("--kernel", kernel, "the kernel (default: $ORRERY_KERNEL)")
      ->required(kernel.empty());
  app.add_option("--mem", memory, "the guest's memory");
  app.add_option("--write", spec.writable, "a folder that the command may write to")
      ->allow_extra_args(false);
  app.add_option("--entropy", spec.entropy, "seed of the guest's random numbers");
  app.add_option("command", spec.argv, "the command")->required();
  app.positionals_at_end();
  CLI11_PARSE(app, argc, argv);

  char state[] = "/tmp/orrery-guest-XXXXXX";
  try {
    if (!::mkdtemp(state)) orrery::throw_errno("make a temporary folder");
    spec.kernel = kernel;
    spec.memory = orrery::parse_bytes(memory);
    spec.init = neighbour("orrery-init");
    spec.state_dir = state;
    spec.cwd = std::filesystem::current_path();
    for (char** entry = environ; *entry; ++entry) spec.environment.emplace_back(*entry);
    orrery::uml::Guest guest(spec);
    const int status = guest.wait();
    std::string output = orrery::read_file(guest.log_path());
    orrery::uml::remove_farewell(output);
    std::cout << output << std::flush;
    std::filesystem::remove_all(state);
    return status;
  } catch (const orrery::Error& error) {
    std::cerr << "orrery-guest: " << error.what() << "\n";
    std::filesystem::remove_all(state);
    return static_cast<int>(error.code());
  }
}
