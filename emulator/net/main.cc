// netshape: a shaped network for anyone's programs.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>

#include "base/error.hh"
#include "emulator/config/network.hh"
#include "emulator/config/network_file.hh"
#include "emulator/net/built.hh"
#include "emulator/net/capture.hh"
#include "emulator/net/inside.hh"
#include "emulator/net/keeper.hh"
#include "emulator/net/network.hh"
#include "emulator/net/outside.hh"
#include "emulator/plan/run_plan.hh"
#include "netshape/capabilities.hh"

namespace orrery::net {

Network load(const std::string& path) {
  const config::Loaded loaded = config::load_network(path, emulator::strategy_catalog());
  for (const std::string& warning : loaded.warnings) std::cerr << warning << "\n";
  const config::Experiment& experiment = loaded.experiment;
  Network network;
  network.file = experiment;
  network.timeline = emulator::expand_timeline(experiment);
  std::vector<netshape::LinkChange> changes;
  for (const emulator::TimedAction& action : network.timeline)
    if (const auto* shape = std::get_if<emulator::ShapeLinks>(&action.action))
      changes.insert(changes.end(), shape->changes.begin(), shape->changes.end());
  network.plan =
      netshape::plan(config::topology_of(experiment.cluster.network), experiment.seed, changes);
  return network;
}

namespace {

struct Arguments {
  std::string file;
  std::string name;  ///< of a network that is up
  std::string what;
  std::string lasts;
  std::vector<std::string> settings;
  std::string node;
  std::string backend = "auto";
  std::vector<std::string> command;
  GuestOptions guest;
  bool json = false;
  bool here = false;
  bool scratch = false;
};

int plan(const Arguments& arguments) {
  const Network network = load(arguments.file);
  std::cout << (arguments.json ? netshape::to_json(network.plan) + "\n"
                               : netshape::to_text(network.plan));
  return 0;
}

int verify(const Arguments& arguments) {
  const Network network = load(arguments.file);  // a mistake is told at once, without a guest
  if (arguments.here) return verify_here(network, arguments.backend);
  return run_in_guest({"verify", "--here", std::filesystem::absolute(arguments.file)},
                      arguments.guest);
}

int probe_host() {
  const netshape::Capabilities host = netshape::probe();
  std::cout << netshape::to_text(host);
  const bool any = host.kernel_backend() || host.fabric_backend();
  return static_cast<int>(any ? ExitCode::ok : ExitCode::machine_lacks);
}

int up(const Arguments& arguments) {
  const Network network = load(arguments.file);
  const std::string name = arguments.name.empty()
                               ? std::filesystem::path(arguments.file).stem().string()
                               : arguments.name;
  bring_up(network, name, arguments.backend);
  std::cout << name << " is up: " << network.plan.topology.nodes.size() << " nodes, "
            << network.plan.links.size() / 2 << " links\n";
  return 0;
}

int down(const Arguments& arguments) {
  const std::string name = chosen_network(arguments.name);
  if (!bring_down(name)) throw Error("no network '" + name + "' is up", ExitCode::usage);
  std::cout << name << " is down\n";
  return 0;
}

// Onto the node: of the network that this is a command of, else of one that is up.
void go_to(const Arguments& arguments) {
  const char* folder = std::getenv(namespaces_variable);
  if (folder && arguments.name.empty())
    enter_node(folder, arguments.node);
  else
    enter(chosen_network(arguments.name), arguments.node);
}

int record(const Arguments& arguments) {
  std::optional<Duration> lasts;
  if (!arguments.lasts.empty()) lasts = parse_duration(arguments.lasts);
  // Before the file's folder may be hidden by the node's view of the host's files.
  const std::string path =
      arguments.file == "-" ? "-" : std::filesystem::absolute(arguments.file).string();
  go_to(arguments);
  std::cerr << capture(path, lasts) << " packets\n";
  return 0;
}

int run(const Arguments& arguments) {
  const Network network = load(arguments.file);
  if (!arguments.node.empty()) {
    const auto& nodes = network.plan.topology.nodes;
    if (std::find(nodes.begin(), nodes.end(), arguments.node) == nodes.end())
      throw Error("there is no node '" + arguments.node + "' in " + arguments.file,
                  ExitCode::usage);
  }
  if (arguments.here)
    return run_here(
        network, arguments.command,
        {arguments.backend, arguments.node, arguments.scratch, arguments.guest.writable});
  std::vector<std::string> inside{"run", "--here", "--scratch",
                                  std::filesystem::absolute(arguments.file)};
  for (const std::string& folder : arguments.guest.writable)
    inside.insert(inside.end(),
                  {"--write", std::filesystem::absolute(folder).lexically_normal().string()});
  if (!arguments.node.empty()) inside.insert(inside.end(), {"--node", arguments.node});
  inside.push_back("--");
  inside.insert(inside.end(), arguments.command.begin(), arguments.command.end());
  return run_in_guest(inside, arguments.guest);
}

void add_guest_options(CLI::App& command, Arguments& arguments) {
  command.add_flag(
      "--here", arguments.here,
      "on this host and in wall time, not in the time-travel kernel: see `netshape probe`");
  command
      .add_option("--backend", arguments.backend,
                  "with --here: kernel (netem), fabric (a user-space switch), auto")
      ->check(CLI::IsMember({"kernel", "fabric", "auto"}));
  command.add_option("--mem", arguments.guest.memory, "memory of the time-travel kernel")
      ->check([](const std::string& text) {
        try {
          parse_bytes(text);
          return std::string();
        } catch (const Error& error) {
          return std::string(error.what());
        }
      });
}

int dispatch(int argc, char** argv) {
  CLI::App app{
      "A shaped network for anyone's programs. FILE is a network file (netshape: 1) or an "
      "experiment."};
  app.require_subcommand(1);
  Arguments arguments;
  std::function<int()> chosen;

  CLI::App* planner = app.add_subcommand("plan", "print every derived number, and why");
  planner->add_option("file", arguments.file, "the network, YAML")->required();
  planner->add_flag("--json", arguments.json, "as JSON, with every reason");
  planner->callback([&] { chosen = [&] { return plan(arguments); }; });

  CLI::App* verifier = app.add_subcommand(
      "verify",
      "build it in the time-travel kernel and measure every link: asked, measured, verdict");
  verifier->add_option("file", arguments.file, "the network, YAML")->required();
  add_guest_options(*verifier, arguments);
  verifier->callback([&] { chosen = [&] { return verify(arguments); }; });

  CLI::App* prober = app.add_subcommand(
      "probe", "say what this host's kernel can do of its own; the time-travel kernel needs none");
  prober->callback([&] { chosen = probe_host; });

  CLI::App* runner = app.add_subcommand(
      "run", "run a command with that network in the time-travel kernel; computing is free there");
  runner->add_option("file", arguments.file, "the network, YAML")->required();
  runner->add_option("--node", arguments.node,
                     "run the command on that node (else beside the network; it reaches nodes by "
                     "`netshape exec`)");
  runner->add_option("--write", arguments.guest.writable, "a folder that it may write to")
      ->allow_extra_args(false);
  runner->add_option("command", arguments.command, "the command, after --")->required();
  runner->add_flag("--scratch", arguments.scratch)->group("");
  add_guest_options(*runner, arguments);
  runner->callback([&] { chosen = [&] { return run(arguments); }; });

  const auto of_network = [&](CLI::App& command) {
    command.add_option("--network", arguments.name,
                       "of the network of that name (default: the only one that is up)");
  };

  CLI::App* builder = app.add_subcommand(
      "up", "build it on this host, in wall time, and leave it there until `netshape down`");
  builder->add_option("file", arguments.file, "the network, YAML")->required();
  builder->add_option("--name", arguments.name, "what to call it (default: the file's name)");
  builder->add_option("--backend", arguments.backend, "kernel (netem), fabric, auto")
      ->check(CLI::IsMember({"kernel", "fabric", "auto"}));
  builder->callback([&] { chosen = [&] { return up(arguments); }; });

  CLI::App* remover = app.add_subcommand("down", "take a network down");
  remover->add_option("network", arguments.name, "which (default: the only one that is up)");
  remover->callback([&] { chosen = [&] { return down(arguments); }; });

  CLI::App* shower =
      app.add_subcommand("show", "print a network that is up, as a file that `up` takes");
  shower->add_option("network", arguments.name, "which (default: the only one that is up)");
  shower->callback([&] {
    chosen = [&] {
      std::cout << show(chosen_network(arguments.name));
      return 0;
    };
  });

  CLI::App* setter = app.add_subcommand("set", "change links of a network that is up, all at once");
  setter->add_option("what", arguments.what, "NODE, \"A->B\" or \"A<->B\"")->required();
  setter->add_option("settings", arguments.settings, "as in delay=50ms loss=1%")->required();
  of_network(*setter);
  setter->callback([&] {
    chosen = [&] {
      std::cout << change(chosen_network(arguments.name), arguments.what, arguments.settings);
      return 0;
    };
  });

  CLI::App* executor = app.add_subcommand(
      "exec", "run a command on a node: of a network that is up, or within `netshape run`");
  executor->add_option("node", arguments.node, "which node")->required();
  executor->add_option("command", arguments.command, "the command, after --")->required();
  of_network(*executor);
  executor->callback([&] {
    chosen = [&]() -> int {
      go_to(arguments);
      become(arguments.command);
    };
  });

  CLI::App* recorder =
      app.add_subcommand("capture", "record a node's packets as pcapng, for Wireshark");
  recorder->add_option("node", arguments.node, "which node")->required();
  recorder->add_option("-w,--write", arguments.file, "where to; - is standard output")->required();
  recorder->add_option("--for", arguments.lasts, "how long (default: until Ctrl-C)");
  of_network(*recorder);
  recorder->callback([&] { chosen = [&] { return record(arguments); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return static_cast<int>(ExitCode::usage);
  }
  return chosen();
}

}  // namespace
}  // namespace orrery::net

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return orrery::net::dispatch(argc, argv);
  } catch (const orrery::Error& error) {
    std::cerr << (std::string(error.what()).find('\n') == std::string::npos ? "netshape: " : "")
              << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "netshape: " << error.what() << "\n";
    return static_cast<int>(orrery::ExitCode::run_failed);
  }
}
