// The same networks as users of libtorch write them: plain operators, gradients by autograd. What
// our stages are compared with, in numbers (tests) and in time (benchmarks).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>

#include <vector>

#include "agents/models/model.hh"

namespace orrery {

class BareLibtorch {
 public:
  /// `start` holds all parameters in the order of ModelSpec::parameters().
  BareLibtorch(const ModelSpec& model, const std::vector<float>& start) : model_(model) {
    for (const ParameterSpec& spec : model.parameters(0, model.layer_count())) {
      const at::Tensor view =
          at::from_blob(const_cast<float*>(start.data()) + spec.offset, spec.shape, at::kFloat);
      parameters_.push_back(view.clone().set_requires_grad(true));
    }
  }

  at::Tensor forward(at::Tensor x) const {
    std::size_t next = 0;
    for (const LayerSpec& layer : model_.layers) {
      switch (layer.kind) {
        case LayerKind::linear:
          x = at::linear(x, parameters_[next], parameters_[next + 1]);
          next += 2;
          break;
        case LayerKind::conv2d:
          x = at::conv2d(x, parameters_[next], parameters_[next + 1], {1, 1},
                         {layer.padding, layer.padding});
          next += 2;
          break;
        case LayerKind::tanh:
          x = at::tanh(x);
          break;
        case LayerKind::relu:
          x = at::relu(x);
          break;
        case LayerKind::max_pool2d:
          x = at::max_pool2d(x, {layer.kernel, layer.kernel});
          break;
        case LayerKind::flatten:
          x = at::flatten(x, 1);
          break;
      }
    }
    return x;
  }

  std::vector<at::Tensor>& parameters() { return parameters_; }

 private:
  ModelSpec model_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace orrery
