// What an experiment takes from other files, or says in fewer words, written out in its tree:
// before the check, so that all of it is checked as if the file had said it, each error at its own
// place.
//
//   network: {import: zoo.gml}            the links of a GML graph (gml.hh)
//   network: {import: latencies.csv}      a matrix of one-way delays between nodes
//   link: {…, trace: {csv: lte.csv}}      time, rate, delay, jitter, loss, a row an instant
//   link: {…, trace: {mahimahi: up.trace, bin: 100ms}, …}
//   link: {…, flap: {period: 10s, down: 1s}, for: 60s}
#pragma once

#include <string>

#include "emulator/config/document.hh"

namespace orrery::config {

/// Paths are relative to `folder`; empty: to the current one.
void resolve_imports(Node& root, const std::string& folder, Diagnostics& diagnostics);

}  // namespace orrery::config
