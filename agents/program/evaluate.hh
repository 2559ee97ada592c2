// Out-of-band evaluation: after a run, on the host, of the parameters that its nodes wrote.
#pragma once

#include <string>

#include "agents/data/dataset.hh"
#include "agents/kernels.hh"
#include "agents/run_spec.hh"

namespace orrery {

/// Puts each step's snapshots together and writes RECORDS_DIR/evaluations.bin: accuracy and
/// cross-entropy on the test images. A step of which a part is missing is left out. The time of an
/// evaluation is that of the last row of its step. Returns how many were written.
int evaluate_snapshots(const RunSpec& spec, const Dataset& data, Kernels& kernels,
                       const std::string& records_dir);

}  // namespace orrery
