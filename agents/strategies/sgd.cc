#include "agents/strategies/sgd.hh"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/philox.hh"

namespace orrery {

SgdOptimizer::SgdOptimizer(double learning_rate, double momentum, std::int64_t parameters)
    : learning_rate_(learning_rate), momentum_(momentum) {
  if (momentum > 0) velocity_.resize(static_cast<std::size_t>(parameters));
}

void SgdOptimizer::step(std::span<float> parameters, std::span<const float> gradients, double scale,
                        double rate_factor) {
  const auto rate = static_cast<float>(learning_rate_ * rate_factor);
  const auto mean = static_cast<float>(scale);
  const auto momentum = static_cast<float>(momentum_);
  if (velocity_.empty()) {
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= rate * mean * gradients[i];
    return;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity_[i] = momentum * velocity_[i] + mean * gradients[i];
    parameters[i] -= rate * velocity_[i];
  }
}

double rate_factor(const std::string& decay, double progress) {
  constexpr double floor = 0.05;
  if (decay == "linear") return 1 - (1 - floor) * progress;
  if (decay == "cosine")
    return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
  return 1;
}

std::vector<OptionSpec> sgd_options() {
  return {
      {.name = "learning_rate",
       .kind = OptionKind::number,
       .fallback = 0.1,
       .help = "step size of SGD",
       .minimum = 0},
      {.name = "momentum",
       .kind = OptionKind::number,
       .fallback = 0.9,
       .help = "heavy-ball momentum (Polyak, 1964); 0: none",
       .minimum = 0,
       .maximum = 0.9999},
      {.name = "batch",
       .kind = OptionKind::integer,
       .fallback = std::int64_t{64},
       .help = "images a worker and step",
       .minimum = 1},
      {.name = "decay",
       .kind = OptionKind::choice,
       .fallback = std::string("linear"),
       .help = "how the step size falls over the run, to 5 % of it",
       .choices = {"constant", "linear", "cosine"}},
  };
}

SampleOrder::SampleOrder(std::uint64_t seed, std::int64_t samples, std::int64_t batch, int workers)
    : seed_(seed),
      samples_(samples),
      batch_(batch),
      workers_(workers),
      order_(static_cast<std::size_t>(samples)) {}

std::span<const std::int64_t> SampleOrder::batch(std::int64_t step, int worker) {
  const std::int64_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Philox random(seed_, "epoch", static_cast<std::uint64_t>(epoch));
    for (std::size_t i = order_.size(); i > 1; --i)  // Fisher and Yates
      std::swap(order_[i - 1], order_[random.below(static_cast<std::uint32_t>(i))]);
  }
  const std::int64_t first = ((step % steps_per_epoch()) * workers_ + worker) * batch_;
  return std::span(order_).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(batch_));
}

}  // namespace orrery
