// Networks from GML files (Himsolt, "GML: A portable Graph File Format", 1997), as the Internet
// Topology Zoo and network emulators write them.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/document.hh"

namespace orrery::config {

/// What a graph says, in the words of an experiment's `network`: a map of `switches` and `wires`
/// whose places are those of the source. Vertices that have the name of one of `nodes` are nodes,
/// all others switches.
///
/// A vertex is named for its `label`, else "n" and its id; what a name may not hold becomes '_'. Of
/// an edge count `latency` or `delay`, `jitter`, `bandwidth` or `rate`, `packet_loss` or `loss`
/// (quantities with units; a loss may be a share; a bandwidth may end in "bit") and the Zoo's
/// `LinkSpeedRaw` (bit/s). Where an edge has no delay and both ends have `Latitude` and
/// `Longitude`, it is the great circle's at 5 µs a kilometre, the planning value for optical fibre
/// (ITU-T G.114, table A.1). An undirected edge is both directions; of a directed graph each edge
/// is its own. What is wrong goes to `diagnostics`.
Node network_of_gml(const Source& source, const std::vector<std::string>& nodes,
                    Diagnostics& diagnostics);

}  // namespace orrery::config
