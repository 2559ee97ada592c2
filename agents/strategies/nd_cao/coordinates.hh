// What a block moves in. Plainly, its parameters; for the first layer, at will, the principal
// components of its own inputs: far fewer numbers, in which a random step is not wasted on
// directions that the inputs hardly have. Either way a block knows only itself and the global loss.
//
// Low-dimensional subspaces for gradient-free training: e.g. arXiv 2511.16652 (low-rank
// directions).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agents/kernel.hh"
#include "agents/strategy.hh"
#include "agents/tensor.hh"

namespace orrery::nd_cao {

/// The unit of a step in each layer.
struct StepUnits {
  bool by_fan_in = true;   ///< 1/sqrt(fan-in), else 1
  double last_factor = 1;  ///< stretches it in the model's last layer with parameters
  double of(const ModelSpec& model, const std::string& layer) const;
};

class Coordinates {
 public:
  virtual ~Coordinates() = default;
  /// Where the model's seeded start lies.
  virtual std::vector<float> start() const = 0;
  /// The unit of a step, per coordinate.
  virtual std::vector<float> scale() const = 0;
  /// Writes the block's parameters into a flat vector of its node's.
  virtual void write(std::span<const float> coordinates, std::span<float> parameters) const = 0;
};

/// Coordinates are the block's parameters. `stage_start` is the node's flat start, whose first
/// entry has offset `begin` in the model.
std::unique_ptr<Coordinates> plain_coordinates(const BlockSpec& block, const ModelSpec& model,
                                               std::int64_t begin,
                                               std::span<const float> stage_start,
                                               const StepUnits& units);

/// The leading principal directions of a set of inputs.
struct Components {
  std::int64_t features = 0;
  std::vector<double> directions;        ///< rank × features, orthonormal rows
  std::vector<double> root_mean_square;  ///< of the inputs along each, descending
};

/// Of samples × features, about zero (not the mean: a bias is a coordinate of its own), by subspace
/// iteration with a fixed start.
Components principal_components(std::span<const float> samples, std::int64_t features,
                                std::int64_t rank);
/// Rounds of that iteration, which the plan must charge.
inline constexpr int subspace_rounds = 60;

/// Coordinates of whole rows of the model's first linear layer: for each row its weights along each
/// component, then its bias. What the start has outside the components stays as it is.
std::unique_ptr<Coordinates> input_coordinates(const BlockSpec& block, const ModelSpec& model,
                                               std::int64_t begin,
                                               std::span<const float> stage_start,
                                               const Components& components, double whitening,
                                               const StepUnits& units);

/// Whether a block's parameters are the first layer's and so can move in its inputs' components.
bool moves_in_inputs(const BlockSpec& block, const ModelSpec& model, int input_rank);
/// How many coordinates a block has.
std::int64_t coordinate_count(const BlockSpec& block, const ModelSpec& model, int input_rank);
/// What writing its parameters costs.
KernelSpec write_kernel(const BlockSpec& block, const ModelSpec& model, int input_rank);

}  // namespace orrery::nd_cao
