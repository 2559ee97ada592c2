// What computes: the seam between strategies and libtorch. agents/torch implements it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "agents/models/model.hh"
#include "agents/tensor.hh"

namespace orrery {

/// The layers [first, last) of a model on one node, their parameters in one flat vector in the
/// order of ModelSpec::parameters(first, last).
class Stage {
 public:
  virtual ~Stage() = default;
  /// Live views: writing to them changes the stage.
  virtual std::span<float> parameters() = 0;
  virtual std::span<float> gradients() = 0;

  /// input: samples × (shape before `first`); returns samples × (shape after `last` − 1).
  virtual Tensor forward(const Tensor& input) = 0;
  /// The same, keeping what backward() needs. One at a time may be outstanding.
  virtual Tensor forward_train(const Tensor& input) = 0;
  /// Writes (not adds) the parameters' gradients; returns the input's, or an empty tensor if not
  /// wanted. grad_output has the shape that forward_train() returned.
  virtual Tensor backward(const Tensor& grad_output, bool want_input_gradient) = 0;
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  /// A stage with the given start (initial_parameters() of the same layers).
  virtual std::unique_ptr<Stage> make_stage(const ModelSpec& model, int first, int last,
                                            std::span<const float> start) = 0;
  /// Mean cross-entropy of logits (samples × classes) against labels.
  virtual double loss(const Tensor& logits, std::span<const std::uint8_t> labels) = 0;
  /// The same; `grad` becomes its gradient with respect to the logits.
  virtual double loss_gradient(const Tensor& logits, std::span<const std::uint8_t> labels,
                               Tensor& grad) = 0;
  /// How many rows have their largest logit at the label.
  virtual std::int64_t correct(const Tensor& logits, std::span<const std::uint8_t> labels) = 0;
};

/// The implementation on libtorch, CPU, one thread.
std::unique_ptr<Kernels> make_torch_kernels();

}  // namespace orrery
