// A tree that was checked against the schema → values, and where each of them was written.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/document.hh"
#include "emulator/config/experiment.hh"
#include "emulator/config/strategy_catalog.hh"

namespace orrery::config {

/// Where the parts of one direction of a link were written; nullptr: a default.
struct LinkOrigin {
  const Node* delay = nullptr;
  const Node* jitter = nullptr;
  const Node* rate = nullptr;
  const Node* loss = nullptr;  ///< or the loss model
  const Node* reorder = nullptr;
};

/// Where the parts of an experiment were written, index by index beside its vectors. `sound` is
/// false where the schema found something wrong, so that the rest says little.
struct Origins {
  struct NodeOrigin {
    const Node* name;
    const Node* device;  ///< nullptr if missing
  };
  struct EventOrigin {
    const Node* map;
    const Node* name;    ///< nullptr if missing
    const Node* action;  ///< the value of `slow`, `link` …; nullptr if missing
    bool sound;
  };
  struct RunOrigin {
    const Node* map;
    bool sound;
  };
  std::vector<NodeOrigin> nodes;
  std::vector<LinkOrigin> up;  ///< beside network.access
  std::vector<LinkOrigin> down;
  const Node* topology = nullptr;  ///< nullptr: a star by default
  const Node* arity = nullptr;
  const Node* trunk_map = nullptr;
  LinkOrigin trunk;
  std::vector<const Node*> link_maps;  ///< the entries of `links`
  struct WireOrigin {
    const Node* map;
    LinkOrigin forth;
    LinkOrigin back;
  };
  std::vector<WireOrigin> wires;     ///< beside network.wires
  const Node* wires_list = nullptr;  ///< nullptr: none are given
  const Node* switches = nullptr;
  bool wires_sound = false;
  std::vector<EventOrigin> events;
  std::vector<RunOrigin> runs;
  const Node* devices = nullptr;  ///< the map
  const Node* workload = nullptr;
  bool nodes_sound = false;  ///< every node's name is known
  bool devices_sound = false;
  bool workload_sound = false;
};

struct Read {
  Experiment experiment;
  Origins origins;
};

/// Reads what is sound and leaves the rest at its default. Unknown nodes in `links` are left for
/// the check, which finds them by `link_maps`.
Read read_experiment(const Node& root, const StrategyCatalog& strategies,
                     const Diagnostics& diagnostics);

/// Reports everything that is wrong with what an experiment means.
void check_experiment(const Read& read, const StrategyCatalog& strategies,
                      Diagnostics& diagnostics);

/// True if anything in this tree was reported.
bool any_bad(const Node& node, const Diagnostics& diagnostics);

}  // namespace orrery::config
