// Tables of comma-separated values, with the place of each cell.
#pragma once

#include <string>
#include <vector>

#include "emulator/config/diagnostics.hh"

namespace orrery::config {

struct Cell {
  std::string text;  ///< without quotes and the spaces around it
  Place place;
};

/// Rows in their order, without blank lines and those that begin with '#'. "a ""quoted"" text" in
/// quotes may hold commas. A quote that does not end is reported.
std::vector<std::vector<Cell>> read_csv(const Source& source, Diagnostics& diagnostics);

}  // namespace orrery::config
