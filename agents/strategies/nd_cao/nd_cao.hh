// Neuro-distributed cognitive adaptive optimisation: gradient-free training in which each block of
// a network learns by itself from the global loss alone, synchronously or asynchronously.
//
// After Michailidis, Michailidis, Gkelios, Karatzinis, Kosmatopoulos, Integrated Computer-Aided
// Engineering 31(1), 2024, 19-41, doi 10.3233/ICA-230718. The protocol between nodes is ours; see
// docs/nd-cao.md.
#pragma once

#include "agents/strategy.hh"

namespace orrery {

const StrategyInfo& nd_cao_info();

}  // namespace orrery
