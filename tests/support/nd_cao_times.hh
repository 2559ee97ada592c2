// How long an evaluation of nd_cao takes, from the times of its parts. docs/nd-cao.md derives it.
#pragma once

#include <vector>

namespace orrery::test {

/// All in milliseconds.
struct NdCaoTimes {
  std::vector<double> forward;  ///< f, by stage
  std::vector<double> move;     ///< u, all of a node's blocks, by stage
  std::vector<double> hop;      ///< c, an activation from stage i to i + 1
  double scalar = 0;            ///< a result from the last stage to another, or a note to the first
  double line = 0;              ///< what one evaluation occupies of the busiest line

  /// An evaluation's way round: Σf + Σc.
  double round() const;
};

/// When each of the first `count` results is published in `mode: sync`: the recursion
///   t_0 = r_0 + u_0 + f_0,  t_i = max(t_{i-1} + c_i, r_i + u_i) + f_i.
std::vector<double> sync_results(const NdCaoTimes& times, int count);

/// Mean time from result to result in `mode: async` with `move_after: loss`, without caching, once
/// it has settled. Holds for W = `in_flight` of 1 and 2, where moves are dear on one node at most
/// and `staleness` is at least W + 2; where no moves are dear, for any W.
double async_period(const NdCaoTimes& times, int in_flight, int staleness);

/// The same with `move_after: trial`, where a block does not wait for the loss of its version.
double async_trial_period(const NdCaoTimes& times, int in_flight);

}  // namespace orrery::test
