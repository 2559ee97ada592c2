#include "tests/support/reference_kernels.hh"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace orrery::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class ReferenceStage : public Stage {
 public:
  ReferenceStage(const ModelSpec& model, int first, int last, std::span<const float> start)
      : model_(model),
        first_(first),
        last_(last),
        parameters_(start.begin(), start.end()),
        gradients_(start.size(), 0.0f) {
    for (int i = first; i < last; ++i) {
      const LayerKind kind = model.layers[at(i)].kind;
      if (kind == LayerKind::conv2d || kind == LayerKind::max_pool2d) {
        throw std::logic_error("the reference kernels know no layer like " +
                               model.layers[at(i)].name);
      }
    }
  }

  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }

  Tensor forward(const Tensor& input) override { return pass(input, nullptr); }
  Tensor forward_train(const Tensor& input) override {
    inputs_.clear();
    return pass(input, &inputs_);
  }

  Tensor backward(const Tensor& grad_output, bool want_input_gradient) override {
    Tensor gradient = grad_output.clone();
    std::size_t offset = parameters_.size();
    for (int i = last_; i-- > first_;) {
      const LayerSpec& layer = model_.layers[at(i)];
      const Tensor& input = inputs_[at(i - first_)];
      const std::int64_t rows = input.shape()[0];
      Tensor below(input.shape());
      if (layer.kind == LayerKind::linear) {
        offset -= at(layer.out * layer.in + layer.out);
        float* weight_gradient = gradients_.data() + offset;
        float* bias_gradient = weight_gradient + layer.out * layer.in;
        const float* weight = parameters_.data() + offset;
        std::fill(weight_gradient, bias_gradient + layer.out, 0.0f);
        std::fill(below.values().begin(), below.values().end(), 0.0f);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t o = 0; o < layer.out; ++o) {
            const float g = gradient.data()[r * layer.out + o];
            bias_gradient[o] += g;
            for (std::int64_t k = 0; k < layer.in; ++k) {
              weight_gradient[o * layer.in + k] += g * input.data()[r * layer.in + k];
              below.data()[r * layer.in + k] += g * weight[o * layer.in + k];
            }
          }
        }
      } else {
        for (std::int64_t e = 0; e < input.count(); ++e) {
          const float x = input.data()[e];
          const float g = gradient.data()[e];
          float slope = 1;
          if (layer.kind == LayerKind::tanh) slope = 1 - std::tanh(x) * std::tanh(x);
          if (layer.kind == LayerKind::relu) slope = x > 0 ? 1.0f : 0.0f;
          below.data()[e] = g * slope;
        }
      }
      gradient = below;
    }
    return want_input_gradient ? gradient : Tensor();
  }

 private:
  Tensor pass(const Tensor& input, std::vector<Tensor>* keep) {
    Tensor x = input;
    const std::int64_t rows = input.shape().at(0);
    std::size_t offset = 0;
    for (int i = first_; i < last_; ++i) {
      const LayerSpec& layer = model_.layers[at(i)];
      if (keep) keep->push_back(x);
      std::vector<std::int64_t> shape = model_.shape_after(i);
      shape.insert(shape.begin(), rows);
      Tensor y(shape);
      if (layer.kind == LayerKind::linear) {
        const float* weight = parameters_.data() + offset;
        const float* bias = weight + layer.out * layer.in;
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t o = 0; o < layer.out; ++o) {
            float sum = bias[o];
            for (std::int64_t k = 0; k < layer.in; ++k) {
              sum += weight[o * layer.in + k] * x.data()[r * layer.in + k];
            }
            y.data()[r * layer.out + o] = sum;
          }
        }
        offset += at(layer.out * layer.in + layer.out);
      } else {
        for (std::int64_t e = 0; e < x.count(); ++e) {
          float v = x.data()[e];
          if (layer.kind == LayerKind::tanh) v = std::tanh(v);
          if (layer.kind == LayerKind::relu) v = std::max(v, 0.0f);
          y.data()[e] = v;
        }
      }
      x = y;
    }
    return x;
  }

  ModelSpec model_;
  int first_;
  int last_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<Tensor> inputs_;
};

class ReferenceKernels : public Kernels {
 public:
  std::unique_ptr<Stage> make_stage(const ModelSpec& model, int first, int last,
                                    std::span<const float> start) override {
    return std::make_unique<ReferenceStage>(model, first, last, start);
  }

  double loss(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    Tensor unused(logits.shape());
    return loss_gradient(logits, labels, unused);
  }

  double loss_gradient(const Tensor& logits, std::span<const std::uint8_t> labels,
                       Tensor& grad) override {
    const std::int64_t rows = logits.shape()[0];
    const std::int64_t classes = logits.shape()[1];
    if (grad.shape() != logits.shape()) grad = Tensor(logits.shape());
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* z = logits.data() + r * classes;
      const double highest = *std::max_element(z, z + classes);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(z[c] - highest);
      const std::int64_t label = labels[at(r)];
      total += std::log(sum) + highest - z[label];
      for (std::int64_t c = 0; c < classes; ++c) {
        const double share = std::exp(z[c] - highest) / sum - (c == label ? 1 : 0);
        grad.data()[r * classes + c] = static_cast<float>(share / static_cast<double>(rows));
      }
    }
    return total / static_cast<double>(rows);
  }

  std::int64_t correct(const Tensor& logits, std::span<const std::uint8_t> labels) override {
    const std::int64_t classes = logits.shape()[1];
    std::int64_t hits = 0;
    for (std::int64_t r = 0; r < logits.shape()[0]; ++r) {
      const float* z = logits.data() + r * classes;
      hits += std::max_element(z, z + classes) - z == labels[at(r)];
    }
    return hits;
  }
};

}  // namespace

std::unique_ptr<Kernels> make_reference_kernels() { return std::make_unique<ReferenceKernels>(); }

}  // namespace orrery::test
