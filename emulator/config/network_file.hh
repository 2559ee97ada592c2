// A network without a cluster around it, for anyone's programs: nodes by name, what connects them,
// and what happens to their links. The same keys as an experiment's.
//
//   netshape: 1
//   nodes: [client, "server[0-1]"]
//   network: {topology: dumbbell, link: {delay: 1ms}, trunk: {rate: 10Mbit/s}}
//   timeline:
//     - {name: drop, at: 5s, link: {node: client, set: {loss: 5%}, for: 2s}}
#pragma once

#include <string>
#include <vector>

#include "emulator/config/load.hh"

namespace orrery::config {

/// Of the experiment that comes out only `cluster`, `timeline` and `seed` mean something; its nodes
/// compute at no cost. An experiment file is taken as it is. Throws InvalidFile with every error at
/// once.
Loaded load_network(const std::string& path, const StrategyCatalog& strategies);

/// The same from a text; `name` stands for the file in messages.
Loaded load_network_text(const std::string& name, const std::string& text,
                         const StrategyCatalog& strategies);

/// A network file of `experiment`'s nodes, links and seed, every link spelt out; without a
/// timeline.
std::string network_to_yaml(const Experiment& experiment);

}  // namespace orrery::config
