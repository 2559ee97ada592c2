// What a model is, before anything computes it: layers in order, their shapes, parameters and cost.
// Everything here is arithmetic, so that check, plan and predictors need no libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

enum class LayerKind { linear, conv2d, tanh, relu, max_pool2d, flatten };

/// One layer. Unused fields stay zero.
struct LayerSpec {
  std::string name;  ///< unique in its model, e.g. "linear1"
  LayerKind kind = LayerKind::linear;
  std::int64_t in = 0;       ///< features (linear) or channels (conv2d)
  std::int64_t out = 0;      ///< features or channels
  std::int64_t kernel = 0;   ///< edge of the window (conv2d, max_pool2d), stride 1 or = kernel
  std::int64_t padding = 0;  ///< conv2d, each side
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

/// One parameter tensor of a layer; `offset` counts floats from the start of the model's flat
/// parameter vector (layers in order; weight, then bias).
struct ParameterSpec {
  std::string layer;
  std::string name;  ///< "weight" or "bias"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

/// A model of named layers.
struct ModelSpec {
  std::string name;                       ///< e.g. "mlp:196-24-16-16-10:tanh"; the key of profiles
  std::vector<std::int64_t> input_shape;  ///< of one sample, e.g. {196} or {1, 28, 28}
  std::int64_t classes = 0;
  std::vector<LayerSpec> layers;

  /// Shape of one sample after layer `i` (i = −1: the input).
  std::vector<std::int64_t> shape_after(int i) const;
  std::int64_t elements_after(int i) const;
  /// Parameters of the layers [first, last), offsets still those of the whole model.
  std::vector<ParameterSpec> parameters(int first, int last) const;
  std::int64_t parameter_count(int first, int last) const;
  std::int64_t parameter_count() const { return parameter_count(0, layer_count()); }
  int layer_count() const { return static_cast<int>(layers.size()); }
  /// Floating-point operations of a forward pass of one sample through [first, last): two for a
  /// multiply-add, one an element for an activation.
  double forward_flops(int first, int last) const;
  /// Layers that own parameters, in order: where a model can be cut so that each stage has some.
  std::vector<int> parametric_layers() const;
};

/// A multi-layer perceptron: widths {196, 24, 10} gives linear-activation-linear.
ModelSpec make_mlp(const std::vector<std::int64_t>& widths, LayerKind activation);
/// LeNet-5-like: two 5×5 convolutions with pooling, three linear layers, for edge×edge grey images.
ModelSpec make_lenet5(std::int64_t edge, std::int64_t classes = 10);

/// The seeded random start of layers [first, last): weights uniform in ±sqrt(3 · gain² / fan_in)
/// (gain 1 for tanh, sqrt(2) for ReLU nets; He et al., ICCV 2015; LeCun et al., 1998), biases zero.
/// Drawn by Philox(seed, layer name), so a start depends neither on placement nor on libtorch.
std::vector<float> initial_parameters(const ModelSpec& model, int first, int last,
                                      std::uint64_t seed);

}  // namespace orrery
