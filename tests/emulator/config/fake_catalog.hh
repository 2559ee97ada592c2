// Strategies for the tests of the experiment file; the real ones live with the agents.
#pragma once

#include "emulator/config/strategy_catalog.hh"

namespace orrery::config {

inline StrategyCatalog fake_catalog() {
  using enum OptionKind;
  const std::int64_t one = 1;
  StrategyCatalog catalog;
  catalog["nd_cao"] = {
      .description = "gradient-free",
      .paper = "a paper",
      .options = {{"mode", choice, std::string("sync"), "how it goes", {}, {}, {"sync", "async"}},
                  {"window_in_flight", integer, one * 2, "evaluations in flight", 1.0, 64.0},
                  {"staleness", integer, one * 4, "bound", 1.0},
                  {"step", number, 0.05, "step", 0.0, 10.0},
                  {"caching", boolean, true, "skip what is the same"}},
      .progress = Progress::evaluations,
      .staged = true};
  catalog["sgd_allreduce"] = {
      .description = "ring",
      .paper = "another",
      .options = {{"learning_rate", number, 0.1, "rate", 0.0},
                  {"momentum", number, 0.9, "momentum", 0.0, 1.0},
                  {"batch", integer, one * 64, "images a node and step", 1.0}}};
  catalog["parameter_server"] = {
      .description = "push and pull",
      .paper = "a third",
      .options = {{"learning_rate", number, 0.02, "rate", 0.0},
                  {"momentum", number, 0.9, "momentum", 0.0, 1.0},
                  {"batch", integer, one * 64, "images a node and step", 1.0},
                  {"server", text, std::string("0"), "a node"},
                  {"patience", duration, one * 5'000'000, "a duration"},
                  {"chunk", bytes, one * 65536, "a size"},
                  {"cap", bit_rate, one * 1'000'000, "a rate"},
                  {"drop", probability, 0.001, "a probability"}},
      .node_options = {"server"}};
  return catalog;
}

}  // namespace orrery::config
