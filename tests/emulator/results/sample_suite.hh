// A suite as the quickstart gives it, made up: four runs on a cluster of four nodes. For looking at
// the report and for the browser test; none of its figures means anything.
#pragma once

#include <string>

namespace orrery::results::testing {

std::string sample_report();
/// One run with names that would break a careless page.
std::string hostile_report();

}  // namespace orrery::results::testing
