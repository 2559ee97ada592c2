#include "emulator/net/inside.hh"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/net/built.hh"
#include "emulator/net/scratch.hh"
#include "netshape/verify.hh"

namespace orrery::net {
namespace {

namespace fs = std::filesystem;

// In the time-travel kernel, whose command line says so.
bool in_virtual_time() {
  return read_file("/proc/cmdline").find("time-travel=") != std::string::npos;
}

// So that a command finds `netshape` itself, wherever it lies.
void be_on_the_path() {
  const char* path = std::getenv("PATH");
  const std::string here = fs::read_symlink("/proc/self/exe").parent_path();
  ::setenv("PATH", (here + ":" + (path ? path : "/usr/bin:/bin")).c_str(), 1);
}

}  // namespace

int verify_here(const Network& network, const std::string& backend) {
  const auto built = build(network, backend);
  const auto verdicts = netshape::verify(
      *built, in_virtual_time() ? netshape::VerifyOptions{} : netshape::wall_time_options());
  std::cout << netshape::to_text(verdicts) << std::flush;
  const bool good = std::all_of(verdicts.begin(), verdicts.end(),
                                [](const auto& verdict) { return verdict.ok(); });
  return good ? 0 : static_cast<int>(ExitCode::run_failed);
}

int run_here(const Network& network, const std::vector<std::string>& command,
             const HereOptions& options) {
  be_on_the_path();  // while it can be told: in another mount namespace the program's path differs
  const auto built = build(network, options.backend);
  const Directory directory(*built);
  if (options.scratch) {
    std::vector<std::string> seen = folders_of(command);
    seen.insert(seen.end(), options.keep.begin(), options.keep.end());
    make_scratch_folders(seen);
  }
  ::setenv(namespaces_variable, directory.path().c_str(), 1);
  const pid_t child = check_system(::fork(), "fork");
  if (child == 0) {
    try {
      if (!options.node.empty()) enter_node(directory.path(), options.node);
      become(command);
    } catch (const Error& error) {
      std::fprintf(stderr, "netshape: %s\n", error.what());
      ::_exit(static_cast<int>(error.code()));
    }
  }
  const Timeline timeline(network.timeline, *built);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw_errno("wait for the command");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace orrery::net
