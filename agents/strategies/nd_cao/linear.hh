// A linear estimate of the global loss in a block's own random offsets.
//
// Each version is a centre plus a random offset, so the covariance of losses and offsets points
// uphill; that is the gradient of evolution strategies (Salimans et al., arXiv 1703.03864) and of
// simultaneous perturbation (Spall, IEEE TAC 37(3), 1992). What the other blocks do meanwhile makes
// the loss fall from one evaluation to the next; that trend is taken out first, as a control
// variate, or it would be credited to whatever the own offsets happened to be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::nd_cao {

struct LinearObservation {
  std::span<const float> offset;  ///< of the version from its centre, in steps
  double loss = 0;
  std::int64_t k = 0;  ///< the evaluation that had this loss
};

struct LinearEstimate {
  std::vector<double> slope;  ///< of the loss, per step, in each coordinate
  double level = 0;           ///< the trend's value at the newest observation
};

/// Ridge regression, dual form. The penalty equals the number of coordinates, which is three times
/// the mean square of an offset uniform in (−1, 1): strong, for there are far fewer observations
/// than coordinates. Throws std::logic_error without observations.
LinearEstimate fit_linear(std::span<const LinearObservation> window);

/// −slope, at a root mean square of 1; all zero if the slope is.
std::vector<float> downhill(std::span<const double> slope);

}  // namespace orrery::nd_cao
