// trace.json: Chrome's trace event format, which Perfetto (ui.perfetto.dev) opens.
//
// "Trace Event Format", Google, 2016: a process a node, a thread each for compute, wait, send and
// pause; instant events for the timeline; counters for loss and accuracy.
#pragma once

#include <string>

#include "emulator/results/run_log.hh"

namespace orrery::results {

std::string trace_json(const RunLog& log);

}  // namespace orrery::results
