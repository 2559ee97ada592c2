// orrery: the command line.

#include <signal.h>

#include <iostream>

#include "base/error.hh"
#include "emulator/cli/command.hh"
#include "emulator/engine/host.hh"

namespace {

// CLI11 has exit codes of its own; ours are those of base/error.hh.
int parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return static_cast<int>(orrery::ExitCode::usage);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "Orrery: a cluster on your desk. Emulates distributed training with real kernels on a "
      "really shaped network."};
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 a run failed, 2 wrong command line or file, 3 the machine lacks "
      "something, 130 interrupted.");
  orrery::cli::Context context;
  for (int i = 0; i < argc; ++i) context.command_line.emplace_back(argv[i]);
  orrery::cli::Chosen chosen;
  orrery::cli::add_run(app, context, chosen);
  orrery::cli::add_inspect(app, chosen);
  orrery::cli::add_profile(app, chosen);
  orrery::cli::add_doctor(app, chosen);
  orrery::cli::add_results(app, chosen);
  app.add_subcommand("version", "print the version")->callback([&] {
    chosen.action = [] {
      std::cout << "orrery " ORRERY_VERSION "\n";
      return 0;
    };
  });
  if (const int status = parse(app, argc, argv); status >= 0) return status;
  try {
    return chosen.action();
  } catch (const orrery::Error& error) {
    std::cerr << (std::string(error.what()).find('\n') == std::string::npos ? "orrery: " : "")
              << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "orrery: " << error.what() << "\n";
    return static_cast<int>(orrery::ExitCode::run_failed);
  }
}
