// The commands of `orrery`, one file each (or a few small ones together). Each adds itself to the
// command line and is run if it was named.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace orrery::cli {

/// Set by main: what was typed, for run.json.
struct Context {
  std::vector<std::string> command_line;
};

/// Runs the command; returns the exit status.
using Action = std::function<int()>;

/// What the command line named.
struct Chosen {
  Action action;
};

void add_run(CLI::App& app, const Context& context, Chosen& chosen);  // run, rerun
void add_inspect(CLI::App& app, Chosen& chosen);  // check, plan, schema, init, list
void add_profile(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);
void add_results(CLI::App& app, Chosen& chosen);  // report, clean

}  // namespace orrery::cli
