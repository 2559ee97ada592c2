// events.jsonl: what happened, one JSON object a line, in the order of emulated time.
#pragma once

#include <string>

#include "emulator/results/run_log.hh"

namespace orrery::results {

std::string events_jsonl(const RunLog& log);

}  // namespace orrery::results
