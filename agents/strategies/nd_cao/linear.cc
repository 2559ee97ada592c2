#include "agents/strategies/nd_cao/linear.hh"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "agents/strategies/nd_cao/estimator.hh"

namespace orrery::nd_cao {
namespace {

/// Takes the least-squares line in k out of the losses; returns its value at the last.
double take_trend_out(std::span<const LinearObservation> window, std::vector<double>& losses) {
  const double n = static_cast<double>(window.size());
  double mean = 0;
  double middle = 0;
  for (const LinearObservation& seen : window) {
    mean += seen.loss / n;
    middle += static_cast<double>(seen.k) / n;
  }
  double along = 0;
  double spread = 0;
  for (const LinearObservation& seen : window) {
    const double x = static_cast<double>(seen.k) - middle;
    along += x * (seen.loss - mean);
    spread += x * x;
  }
  const double slope = spread > 0 ? along / spread : 0;
  double newest = middle;
  for (const LinearObservation& seen : window) {
    const double x = static_cast<double>(seen.k);
    losses.push_back(seen.loss - mean - slope * (x - middle));
    newest = std::max(newest, x);
  }
  return mean + slope * (newest - middle);
}

}  // namespace

LinearEstimate fit_linear(std::span<const LinearObservation> window) {
  if (window.empty()) throw std::logic_error("an estimate needs observations");
  const std::size_t rows = window.size();
  const std::size_t columns = window[0].offset.size();
  LinearEstimate estimate;
  std::vector<double> losses;
  estimate.level = take_trend_out(window, losses);

  std::vector<double> centred(rows * columns);
  for (std::size_t j = 0; j < columns; ++j) {
    double mean = 0;
    for (const LinearObservation& seen : window) mean += seen.offset[j];
    mean /= static_cast<double>(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      centred[i * columns + j] = window[i].offset[j] - mean;
    }
  }
  estimate.slope = ridge_dual(centred, losses, static_cast<double>(columns));
  return estimate;
}

std::vector<float> downhill(std::span<const double> slope) {
  double square = 0;
  for (const double s : slope) square += s * s;
  const double rms = std::sqrt(square / static_cast<double>(slope.size()));
  std::vector<float> direction(slope.size(), 0.0f);
  if (rms > 0) {
    for (std::size_t j = 0; j < slope.size(); ++j) {
      direction[j] = static_cast<float>(-slope[j] / rms);
    }
  }
  return direction;
}

}  // namespace orrery::nd_cao
