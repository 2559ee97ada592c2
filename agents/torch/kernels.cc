// Stages on libtorch's CPU operators, called below autograd and its dispatcher (at::cpu::…): in
// steps of tens of microseconds the bookkeeping of either would cost more than the arithmetic.
// Gradients are written by hand for the few kinds of layer that a ModelSpec knows.
#include "agents/kernels.hh"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/tanh_backward_cpu_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/threshold_cpu_dispatch.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "agents/torch/calibrate.hh"

namespace orrery {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t alignment = 64;  ///< a cache line, and what libtorch itself allocates by

Shape batch_shape(std::int64_t n, const Shape& sample) {
  Shape shape{n};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

Tensor make_tensor(Shape shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  const std::size_t bytes = (count * sizeof(float) + alignment) / alignment * alignment;
  auto* data = static_cast<float*>(std::aligned_alloc(alignment, bytes));
  if (data == nullptr) throw std::bad_alloc();
  return Tensor(std::move(shape), std::shared_ptr<float>(data, std::free));
}

/// The same memory for libtorch; whoever calls keeps it alive.
at::Tensor borrow(const float* data, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(data), shape, at::kFloat);
}

/// The same memory for everybody else; it lives as long as somebody holds it.
Tensor lend(Shape shape, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return Tensor(std::move(shape),
                std::shared_ptr<float>(whole.data_ptr<float>(), [whole](float*) {}));
}

/// Sums of the columns of rows × columns values. Partial sums of 64 rows keep the rounding error of
/// long batches small.
void sum_columns(const float* values, std::int64_t rows, std::int64_t columns, float* sums) {
  constexpr std::int64_t block = 64;
  std::fill_n(sums, columns, 0.0f);
  if (rows <= block) {
    for (std::int64_t row = 0; row < rows; ++row, values += columns) {
      for (std::int64_t i = 0; i < columns; ++i) sums[i] += values[i];
    }
    return;
  }
  std::vector<float> partial(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; row += block) {
    const std::int64_t n = std::min(block, rows - row);
    sum_columns(values, n, columns, partial.data());
    for (std::int64_t i = 0; i < columns; ++i) sums[i] += partial[static_cast<std::size_t>(i)];
    values += n * columns;
  }
}

bool is_activation(LayerKind kind) { return kind == LayerKind::tanh || kind == LayerKind::relu; }

struct Layer {
  LayerSpec spec;
  Shape in;  ///< of one sample
  Shape out;
  at::Tensor weight, weight_transposed;  ///< views of the stage's flat vector
  at::Tensor bias;
  at::Tensor weight_grad;  ///< likewise of its gradient
  float* bias_grad = nullptr;
  /// Whether its output overwrites the output of the layer before: activations do, whose gradient
  /// needs no more than their output.
  bool in_place = false;
  /// Likewise its input's gradient that of its output, in the stage's own memory.
  bool backward_in_place = false;
};

/// What is kept for one batch size, so that a step allocates nothing but what it returns.
struct Workspace {
  std::vector<at::Tensor> outputs;    ///< by layer
  std::vector<at::Tensor> indices;    ///< by layer: where a pool found its maxima
  std::vector<at::Tensor> gradients;  ///< by layer, of its input
};

class TorchStage : public Stage {
 public:
  TorchStage(const ModelSpec& model, int first, int last, std::span<const float> start)
      : in_shape_(model.shape_after(first - 1)), out_shape_(model.shape_after(last - 1)) {
    const std::int64_t count = model.parameter_count(first, last);
    if (static_cast<std::int64_t>(start.size()) != count) {
      throw std::logic_error("a stage of " + std::to_string(count) +
                             " parameters is given a start of " + std::to_string(start.size()));
    }
    parameters_ = make_tensor({count});
    gradients_ = make_tensor({count});
    std::copy(start.begin(), start.end(), parameters_.data());
    std::fill_n(gradients_.data(), count, 0.0f);

    std::int64_t origin = 0;
    for (int i = first; i < last; ++i) {
      Layer layer;
      layer.spec = model.layers[static_cast<std::size_t>(i)];
      layer.in = model.shape_after(i - 1);
      layer.out = model.shape_after(i);
      const std::vector<ParameterSpec> parameters = model.parameters(i, i + 1);
      if (!parameters.empty()) {
        const ParameterSpec& weight = parameters[0];
        layer.weight = borrow(parameters_.data() + origin, weight.shape);
        if (layer.spec.kind == LayerKind::linear) layer.weight_transposed = layer.weight.t();
        layer.weight_grad = borrow(gradients_.data() + origin, weight.shape);
        origin += weight.count;
        layer.bias = borrow(parameters_.data() + origin, parameters[1].shape);
        layer.bias_grad = gradients_.data() + origin;
        origin += parameters[1].count;
      }
      layers_.push_back(std::move(layer));
    }
    plan_memory();
  }

  std::span<float> parameters() override { return parameters_.values(); }
  std::span<float> gradients() override { return gradients_.values(); }

  Tensor forward(const Tensor& input) override {
    const std::int64_t n = samples_of(input, in_shape_);
    if (passes_through_ || n == 0) return reshaped(input, batch_shape(n, out_shape_), n);
    const c10::InferenceMode guard;
    Tensor output = make_tensor(batch_shape(n, out_shape_));
    const std::int64_t in_count = input.count() / n;
    const std::int64_t out_count = output.count() / n;
    for (std::int64_t row = 0; row < n; row += chunk_) {
      const std::int64_t rows = std::min(chunk_, n - row);
      Workspace& space = workspace(inference_, rows);
      const at::Tensor from = borrow(input.data() + row * in_count, batch_shape(rows, in_shape_));
      const at::Tensor to = borrow(output.data() + row * out_count, batch_shape(rows, out_shape_));
      run_forward(space, from, to);
    }
    return output;
  }

  Tensor forward_train(const Tensor& input) override {
    const std::int64_t n = samples_of(input, in_shape_);
    saved_input_ = input;
    saved_output_ = Tensor();
    outstanding_ = true;
    if (passes_through_ || n == 0) return reshaped(input, batch_shape(n, out_shape_), n);
    const c10::InferenceMode guard;
    Tensor output = make_tensor(batch_shape(n, out_shape_));
    // The last activation's gradient needs this output, which the caller shares: see Message.
    saved_output_ = output;
    run_forward(workspace(training_, n), borrow(input.data(), batch_shape(n, in_shape_)),
                borrow(output.data(), output.shape()));
    return output;
  }

  Tensor backward(const Tensor& grad_output, bool want_input_gradient) override {
    if (!outstanding_) throw std::logic_error("backward() without a forward_train() before it");
    outstanding_ = false;
    const std::int64_t n = samples_of(grad_output, out_shape_);
    if (n != saved_input_.shape().front()) {
      throw std::logic_error("a gradient of another batch size than the forward pass had");
    }
    Tensor grad_input;
    if (passes_through_ || n == 0) {
      std::fill_n(gradients_.data(), gradients_.count(), 0.0f);
      if (want_input_gradient) grad_input = reshaped(grad_output, batch_shape(n, in_shape_), n);
    } else {
      const c10::InferenceMode guard;
      grad_input = run_backward(n, grad_output, want_input_gradient);
    }
    saved_input_ = Tensor();
    saved_output_ = Tensor();
    return grad_input;
  }

 private:
  /// Decides, once, which layers write where.
  void plan_memory() {
    bool own = false;  // whether what a layer reads is the stage's memory, not the caller's
    std::int64_t largest = 1;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      if (layer.spec.kind == LayerKind::flatten) continue;
      // An activation on an activation would overwrite what the first one's gradient needs.
      const bool after_activation = i > 0 && is_activation(before(i).spec.kind);
      layer.in_place = is_activation(layer.spec.kind) && own && !after_activation;
      own = true;
      std::int64_t count = 1;
      for (const std::int64_t extent : layer.out) count *= extent;
      largest = std::max(largest, count);
    }
    passes_through_ = !own;
    // A quarter of a million floats (1 MiB) a layer stay in cache and bound the memory of an
    // evaluation over a whole data set.
    chunk_ = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / largest);

    own = false;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      if (layer.spec.kind == LayerKind::flatten) continue;
      layer.backward_in_place = is_activation(layer.spec.kind) && own;
      own = true;
    }
    // The layers whose result is what the stage returns.
    for (std::size_t i = layers_.size(); i-- > 0;) {
      returns_.insert(returns_.begin(), i);
      if (layers_[i].spec.kind != LayerKind::flatten && !layers_[i].in_place) break;
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      backward_returns_.push_back(i);
      if (layers_[i].spec.kind != LayerKind::flatten && !layers_[i].backward_in_place) break;
    }
  }

  /// The nearest layer before `i` that computes anything, or the first.
  const Layer& before(std::size_t i) const {
    std::size_t j = i - 1;
    while (j > 0 && layers_[j].spec.kind == LayerKind::flatten) --j;
    return layers_[j];
  }

  static Tensor reshaped(const Tensor& tensor, Shape shape, std::int64_t n) {
    return n == 0 ? make_tensor(std::move(shape)) : tensor.view(0, std::move(shape));
  }

  static std::int64_t samples_of(const Tensor& tensor, const Shape& sample) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : sample) elements *= extent;
    const std::int64_t n = tensor.shape().empty() ? 0 : tensor.shape().front();
    if (tensor.shape().empty() || tensor.count() != n * elements) {
      throw std::logic_error("a stage is given " + std::to_string(tensor.count()) + " values for " +
                             std::to_string(n) + " samples of " + std::to_string(elements));
    }
    return n;
  }

  bool returns(std::size_t i) const { return !returns_.empty() && i >= returns_.front(); }
  bool backward_returns(std::size_t i) const {
    return !backward_returns_.empty() && i <= backward_returns_.back();
  }

  Workspace& workspace(std::map<std::int64_t, Workspace>& spaces, std::int64_t n) {
    const auto found = spaces.find(n);
    if (found != spaces.end()) return found->second;
    // A run has a batch size, the rest of an epoch and little else; more would only hoard memory.
    if (spaces.size() >= 4) spaces.clear();
    Workspace& space = spaces[n];
    const std::size_t count = layers_.size();
    space.outputs.resize(count);
    space.indices.resize(count);
    space.gradients.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Layer& layer = layers_[i];
      const LayerKind kind = layer.spec.kind;
      if (kind == LayerKind::max_pool2d) {
        space.indices[i] = at::empty(batch_shape(n, layer.out), at::kLong);
      }
      // Convolutions bring their own memory; the others get it where they do not share.
      if (kind == LayerKind::flatten || kind == LayerKind::conv2d) continue;
      if (!layer.in_place && !returns(i)) {
        space.outputs[i] = at::empty(batch_shape(n, layer.out), at::kFloat);
      }
    }
    return space;
  }

  /// Writes the output of the last layer to `to`, whatever came before to the workspace.
  void run_forward(Workspace& space, const at::Tensor& from, const at::Tensor& to) const {
    at::Tensor x = from;
    const std::int64_t n = from.size(0);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      at::Tensor& output = space.outputs[i];
      if (layer.spec.kind == LayerKind::flatten) {
        output = x.view(batch_shape(n, layer.out));
        x = output;
        continue;
      }
      if (returns(i)) {
        output = i + 1 == layers_.size() ? to : to.view(batch_shape(n, layer.out));
      } else if (layer.in_place) {
        output = x;
      }
      switch (layer.spec.kind) {
        case LayerKind::linear:
          at::cpu::addmm_out(output, layer.bias, x, layer.weight_transposed);
          break;
        case LayerKind::conv2d: {
          const std::int64_t pad[] = {layer.spec.padding, layer.spec.padding};
          const at::Tensor result =
              at::convolution(x, layer.weight, layer.bias, ones, pad, ones, false, zeros, 1);
          if (returns(i)) {
            output.copy_(result);
          } else {
            output = result.contiguous();
          }
          break;
        }
        case LayerKind::tanh:
          at::cpu::tanh_out(output, x);
          break;
        case LayerKind::relu:
          at::cpu::threshold_out(output, x, 0, 0);
          break;
        case LayerKind::max_pool2d: {
          const std::int64_t edge[] = {layer.spec.kernel, layer.spec.kernel};
          at::cpu::max_pool2d_with_indices_out(output, space.indices[i], x, edge, edge, zeros, ones,
                                               false);
          break;
        }
        case LayerKind::flatten:
          break;
      }
      x = output;
    }
  }

  Tensor run_backward(std::int64_t n, const Tensor& grad_output, bool want_input_gradient) {
    Workspace& space = workspace(training_, n);
    const at::Tensor input = borrow(saved_input_.data(), batch_shape(n, in_shape_));
    at::Tensor grad = borrow(grad_output.data(), batch_shape(n, out_shape_));
    Tensor returned;

    // Below the first layer that has parameters nobody needs a gradient, unless it is asked for.
    std::size_t stop = 0;
    if (!want_input_gradient) {
      while (stop < layers_.size() && !layers_[stop].weight.defined()) ++stop;
    }
    for (std::size_t i = layers_.size(); i-- > stop;) {
      Layer& layer = layers_[i];
      const LayerKind kind = layer.spec.kind;
      const Shape in_shape = batch_shape(n, layer.in);
      if (kind == LayerKind::flatten) {
        grad = grad.view(in_shape);
        continue;
      }
      const at::Tensor& x = i == 0 ? input : space.outputs[i - 1];
      const bool want = i > stop || want_input_gradient;
      at::Tensor target;  // the gradient of the layer's input
      if (layer.backward_in_place) {
        target = grad;
      } else if (want && kind != LayerKind::conv2d) {
        if (backward_returns(i)) {
          returned = make_tensor(batch_shape(n, in_shape_));
          target = borrow(returned.data(), in_shape);
        } else {
          at::Tensor& kept = space.gradients[i];
          if (!kept.defined()) kept = at::empty(in_shape, at::kFloat);
          target = kept;
        }
      }
      switch (kind) {
        case LayerKind::linear:
          at::cpu::mm_out(layer.weight_grad, grad.t(), x);
          sum_columns(grad.data_ptr<float>(), n, layer.spec.out, layer.bias_grad);
          if (want) at::cpu::mm_out(target, grad, layer.weight);
          break;
        case LayerKind::conv2d: {
          const std::int64_t pad[] = {layer.spec.padding, layer.spec.padding};
          const std::int64_t bias_shape[] = {layer.spec.out};
          const auto [grad_input, grad_weight, grad_bias] =
              at::convolution_backward(grad, x, layer.weight, at::OptionalIntArrayRef(bias_shape),
                                       ones, pad, ones, false, zeros, 1, {want, true, true});
          layer.weight_grad.copy_(grad_weight);
          std::copy_n(grad_bias.contiguous().data_ptr<float>(), layer.spec.out, layer.bias_grad);
          if (want) target = grad_input.contiguous();
          if (want && backward_returns(i)) returned = lend(batch_shape(n, in_shape_), target);
          break;
        }
        case LayerKind::tanh:
          at::cpu::tanh_backward_out(target, grad, space.outputs[i]);
          break;
        case LayerKind::relu:
          at::cpu::threshold_backward_out(target, grad, space.outputs[i], 0);
          break;
        case LayerKind::max_pool2d: {
          const std::int64_t edge[] = {layer.spec.kernel, layer.spec.kernel};
          at::cpu::max_pool2d_with_indices_backward_out(target, grad, x, edge, edge, zeros, ones,
                                                        false, space.indices[i]);
          break;
        }
        case LayerKind::flatten:
          break;
      }
      grad = target;
    }
    return returned;
  }

  static constexpr std::int64_t ones[] = {1, 1};
  static constexpr std::int64_t zeros[] = {0, 0};

  Shape in_shape_;
  Shape out_shape_;
  Tensor parameters_;
  Tensor gradients_;
  std::vector<Layer> layers_;
  std::vector<std::size_t> returns_;  ///< layers whose output is the returned tensor
  std::vector<std::size_t>
      backward_returns_;         ///< layers whose input's gradient is the returned one
  bool passes_through_ = false;  ///< no layer computes anything
  std::int64_t chunk_ = 1;       ///< samples of one piece of forward()
  std::map<std::int64_t, Workspace> training_;
  std::map<std::int64_t, Workspace> inference_;
  Tensor saved_input_;
  Tensor saved_output_;
  bool outstanding_ = false;
};

class TorchKernels : public Kernels {
 public:
  TorchKernels() { use_one_thread(); }

  std::unique_ptr<Stage> make_stage(const ModelSpec& model, int first, int last,
                                    std::span<const float> start) override {
    return std::make_unique<TorchStage>(model, first, last, start);
  }

  double loss(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    const std::int64_t rows = check(logits, labels);
    if (rows == 0) return 0;
    const c10::InferenceMode guard;
    return mean_loss(log_softmax(logits, rows), labels);
  }

  double loss_gradient(const Tensor& logits, std::span<const std::uint8_t> labels,
                       Tensor& grad) override {
    const std::int64_t rows = check(logits, labels);
    // Its memory is used again unless somebody else still holds it: a message, or the logits.
    if (grad.shape() != logits.shape() || grad.storage().use_count() != 1) {
      grad = make_tensor(logits.shape());
    }
    if (rows == 0) return 0;
    const c10::InferenceMode guard;
    const std::int64_t classes = logits.count() / rows;
    const at::Tensor& log_probability = log_softmax(logits, rows);
    at::Tensor target = borrow(grad.data(), {rows, classes});
    at::cpu::exp_out(target, log_probability);
    const float scale = 1.0f / static_cast<float>(rows);
    float* row = grad.data();
    for (const std::uint8_t label : labels) {
      row[label] -= 1.0f;
      for (std::int64_t i = 0; i < classes; ++i) row[i] *= scale;
      row += classes;
    }
    return mean_loss(log_probability, labels);
  }

  std::int64_t correct(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    const std::int64_t rows = check(logits, labels);
    if (rows == 0) return 0;
    const std::int64_t classes = logits.count() / rows;
    std::int64_t hits = 0;
    const float* row = logits.data();
    for (const std::uint8_t label : labels) {
      const float* best = std::max_element(row, row + classes);
      // A row that is not finite has no largest logit.
      if (best - row == label && std::isfinite(*best)) ++hits;
      row += classes;
    }
    return hits;
  }

 private:
  static std::int64_t check(const Tensor& logits, std::span<const std::uint8_t> labels) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    if (logits.shape().size() != 2 || logits.shape()[0] != rows) {
      throw std::logic_error("logits of another number of samples than there are labels");
    }
    const std::int64_t classes = logits.shape()[1];
    for (const std::uint8_t label : labels) {
      if (label >= classes) throw std::logic_error("a label that is no class");
    }
    return rows;
  }

  const at::Tensor& log_softmax(const Tensor& logits, std::int64_t rows) {
    const std::int64_t classes = logits.count() / rows;
    if (!scratch_.defined() || scratch_.size(0) != rows || scratch_.size(1) != classes) {
      scratch_ = at::empty({rows, classes}, at::kFloat);
    }
    at::cpu::_log_softmax_out(scratch_, borrow(logits.data(), {rows, classes}), 1, false);
    return scratch_;
  }

  static double mean_loss(const at::Tensor& log_probability, std::span<const std::uint8_t> labels) {
    const float* row = log_probability.data_ptr<float>();
    double sum = 0;
    for (const std::uint8_t label : labels) {
      sum -= static_cast<double>(row[label]);
      row += log_probability.size(1);
    }
    return sum / static_cast<double>(labels.size());
  }

  at::Tensor scratch_;  ///< log-probabilities of the latest batch
};

}  // namespace

std::unique_ptr<Kernels> make_torch_kernels() { return std::make_unique<TorchKernels>(); }

}  // namespace orrery
