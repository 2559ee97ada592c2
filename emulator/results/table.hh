// The table that a suite ends with on the terminal.
#pragma once

#include <span>
#include <string>

#include "emulator/results/summary.hh"

namespace orrery::results {

struct TableStyle {
  int width = 120;      ///< columns of the terminal; long names are shortened to fit
  bool colour = false;  ///< ANSI colours on the verdict
};

/// Columns aligned; a sentence below it where gradient-free runs ship more as activations than
/// others ship as gradients.
std::string summary_table(std::span<const RunSummary> runs, const TableStyle& style = {});

/// That sentence, from the figures; empty if it does not hold.
std::string shipping_remark(std::span<const RunSummary> runs);

}  // namespace orrery::results
