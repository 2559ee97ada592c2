// The runs of nd_cao that nd_cao_times_guest makes and nd_cao_times_test knows the times of: one
// toy net of four stages on four nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/nd_cao_times.hh"

namespace orrery::test {

struct NdCaoCase {
  const char* name;
  std::vector<double> forward;  ///< ms, by stage
  std::vector<double> move;     ///< ms, by stage
  double delay = 1;             ///< ms from any node to any other
  int in_flight = 0;            ///< 0: sync
  int staleness = 4;
  int evaluations = 60;
  double slow_line_mbit = 0;  ///< of node 1 towards the others; 0: no rates at all
  int straggler = -1;         ///< node of half the speed
  std::int64_t images = 30;
};

inline const std::vector<NdCaoCase>& nd_cao_cases() {
  static const std::vector<NdCaoCase> cases{
      {.name = "sync", .forward = {5, 6, 7, 8}, .move = {1, 2, 3, 4}},
      {.name = "sync_dear_move", .forward = {5, 5, 5, 5}, .move = {1, 40, 1, 1}, .delay = 4},
      {.name = "sync_straggler", .forward = {5, 6, 7, 8}, .move = {1, 2, 3, 4}, .straggler = 1},
      {.name = "async_round",
       .forward = {5, 5, 5, 5},
       .move = {0.1, 0.1, 0.1, 0.1},
       .delay = 3,
       .in_flight = 2,
       .evaluations = 120},
      {.name = "async_round_of_four",
       .forward = {5, 6, 5, 6},
       .move = {0.1, 0.1, 0.1, 0.1},
       .delay = 3,
       .in_flight = 4,
       .staleness = 8,
       .evaluations = 120},
      {.name = "async_one",
       .forward = {5, 6, 7, 8},
       .move = {0.1, 0.1, 0.1, 0.1},
       .in_flight = 1,
       .evaluations = 80},
      {.name = "async_busy_stage",
       .forward = {5, 25, 5, 5},
       .move = {0.1, 10, 0.1, 0.1},
       .in_flight = 2,
       .evaluations = 120},
      {.name = "async_line",
       .forward = {1, 1, 1, 1},
       .move = {0.1, 0.1, 0.1, 0.1},
       .in_flight = 4,
       .staleness = 8,
       .slow_line_mbit = 10,
       .images = 4000},
      // Results come 5 ms apart, so that the second of two finds node 0 in its move.
      {.name = "async_dear_first",
       .forward = {4, 5, 3, 4},
       .move = {30, 0.1, 0.1, 0.1},
       .in_flight = 2,
       .evaluations = 120},
      {.name = "async_dear_middle",
       .forward = {4, 4, 4, 4},
       .move = {0.1, 30, 0.1, 0.1},
       .in_flight = 2,
       .evaluations = 120},
      {.name = "async_dear_last_apart",
       .forward = {4, 4, 4, 4},
       .move = {0.1, 0.1, 0.1, 10},
       .in_flight = 2,
       .evaluations = 120},
      {.name = "async_dear_last_together",
       .forward = {4, 4, 4, 4},
       .move = {0.1, 0.1, 0.1, 30},
       .in_flight = 2,
       .evaluations = 120},
  };
  return cases;
}

}  // namespace orrery::test
