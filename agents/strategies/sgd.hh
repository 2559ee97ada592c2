// What the gradient baselines share: the optimiser and the order in which samples are drawn.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agents/kernels.hh"
#include "base/option.hh"

namespace orrery {

/// Stochastic gradient descent with heavy-ball momentum (Polyak, 1964), as PyTorch's SGD:
/// v ← μ v + g, θ ← θ − η v.
class SgdOptimizer {
 public:
  SgdOptimizer(double learning_rate, double momentum, std::int64_t parameters);
  /// One step; `progress` in [0, 1] is the share of the run that is over, for the decay.
  void step(std::span<float> parameters, std::span<const float> gradients, double scale,
            double rate_factor);

 private:
  double learning_rate_;
  double momentum_;
  std::vector<float> velocity_;
};

/// η's factor at `progress` in [0, 1]: "constant" 1; "linear" from 1 to 0.05; "cosine" half a
/// period.
double rate_factor(const std::string& decay, double progress);

/// learning_rate, momentum, batch, decay: with their defaults and help.
std::vector<OptionSpec> sgd_options();

/// The samples of each step: every epoch a new permutation, drawn by Philox(seed, "epoch", epoch),
/// cut into global batches of which each worker takes its part. A remainder smaller than a global
/// batch is left out of its epoch.
class SampleOrder {
 public:
  SampleOrder(std::uint64_t seed, std::int64_t samples, std::int64_t batch, int workers);
  std::int64_t steps_per_epoch() const { return samples_ / (batch_ * workers_); }
  /// Indices of `worker` in global step `step` (from 0). The span is valid until the next call.
  std::span<const std::int64_t> batch(std::int64_t step, int worker);

 private:
  std::uint64_t seed_;
  std::int64_t samples_;
  std::int64_t batch_;
  int workers_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

}  // namespace orrery
