#include "agents/kernel.hh"

#include <stdexcept>

namespace orrery {
namespace {

constexpr double float_bytes = 4;
constexpr double double_bytes = 8;

/// One draw of Philox::uniform(): two of the four words that ten rounds make, each round about ten
/// integer operations. Counted like floating-point operations, for a roofline knows no others.
constexpr double draw_operations = 50;

/// Memory traffic of a forward pass of `samples`: each layer reads its input and its parameters
/// once and writes its output.
double forward_bytes(const ModelSpec& model, int first, int last, std::int64_t samples) {
  double elements = 0;
  for (int i = first; i < last; ++i) {
    if (model.layers[static_cast<std::size_t>(i)].kind == LayerKind::flatten) continue;
    elements += static_cast<double>(model.elements_after(i - 1) + model.elements_after(i));
  }
  return float_bytes * (elements * static_cast<double>(samples) +
                        static_cast<double>(model.parameter_count(first, last)));
}

KernelSpec layers_kernel(KernelOp op, int first, int last, std::int64_t samples) {
  KernelSpec kernel;
  kernel.op = op;
  kernel.count = samples;
  kernel.first = first;
  kernel.last = last;
  return kernel;
}

KernelSpec vector_kernel(KernelOp op, std::int64_t count, double flops, double bytes) {
  KernelSpec kernel;
  kernel.op = op;
  kernel.count = count;
  kernel.flops = flops * static_cast<double>(count);
  kernel.bytes = bytes * static_cast<double>(count);
  return kernel;
}

}  // namespace

const char* to_string(KernelOp op) {
  switch (op) {
    case KernelOp::forward:
      return "forward";
    case KernelOp::forward_train:
      return "forward_train";
    case KernelOp::backward:
      return "backward";
    case KernelOp::loss:
      return "loss";
    case KernelOp::loss_gradient:
      return "loss_gradient";
    case KernelOp::load_batch:
      return "load_batch";
    case KernelOp::update:
      return "update";
    case KernelOp::reduce:
      return "reduce";
    case KernelOp::copy:
      return "copy";
    case KernelOp::estimator_fit:
      return "estimator_fit";
    case KernelOp::candidates:
      return "candidates";
    case KernelOp::fill:
      return "fill";
    case KernelOp::message:
      return "message";
  }
  throw std::logic_error("a kernel of no known operation");
}

std::string KernelSpec::key() const {
  std::string text = to_string(op);
  switch (op) {
    case KernelOp::forward:
    case KernelOp::forward_train:
    case KernelOp::backward:
      return text + "[" + std::to_string(first) + "," + std::to_string(last) + ")x" +
             std::to_string(count);
    case KernelOp::loss:
    case KernelOp::loss_gradient:
    case KernelOp::load_batch:
    case KernelOp::estimator_fit:
    case KernelOp::candidates:
      return text + " x" + std::to_string(count) + "x" + std::to_string(extra);
    case KernelOp::update:
      return text + (extra != 0 ? " momentum x" : " x") + std::to_string(count);
    case KernelOp::reduce:
    case KernelOp::copy:
    case KernelOp::fill:
    case KernelOp::message:
      return text + " x" + std::to_string(count);
  }
  return text;
}

KernelSpec forward_kernel(const ModelSpec& model, int first, int last, std::int64_t samples) {
  KernelSpec kernel = layers_kernel(KernelOp::forward, first, last, samples);
  kernel.flops = model.forward_flops(first, last) * static_cast<double>(samples);
  kernel.bytes = forward_bytes(model, first, last, samples);
  return kernel;
}

KernelSpec forward_train_kernel(const ModelSpec& model, int first, int last, std::int64_t samples) {
  KernelSpec kernel = forward_kernel(model, first, last, samples);
  kernel.op = KernelOp::forward_train;
  return kernel;
}

KernelSpec backward_kernel(const ModelSpec& model, int first, int last, std::int64_t samples) {
  KernelSpec kernel = layers_kernel(KernelOp::backward, first, last, samples);
  // A parametric layer multiplies twice, once for the parameters' gradient and once for the
  // input's; an activation multiplies its gradient by the derivative. Nobody wants the gradient of
  // the model's input, so the model's first layer multiplies once.
  kernel.flops = 2 * model.forward_flops(first, last);
  if (first == 0 && last > 0) kernel.flops -= model.forward_flops(0, 1);
  kernel.flops *= static_cast<double>(samples);
  // The output's gradient and the saved input are read, the input's gradient is written; parameters
  // are read and their gradients written.
  kernel.bytes = 2 * forward_bytes(model, first, last, samples);
  return kernel;
}

KernelSpec loss_kernel(std::int64_t rows, std::int64_t classes) {
  // Per logit: comparison for the maximum, subtraction, exponential (as 4), addition.
  KernelSpec kernel = vector_kernel(KernelOp::loss, rows, 7 * static_cast<double>(classes),
                                    float_bytes * static_cast<double>(classes) + 1);
  kernel.extra = classes;
  return kernel;
}

KernelSpec loss_gradient_kernel(std::int64_t rows, std::int64_t classes) {
  // The same, a second exponential, and a subtraction and a scaling of the gradient.
  KernelSpec kernel =
      vector_kernel(KernelOp::loss_gradient, rows, 13 * static_cast<double>(classes),
                    2 * float_bytes * static_cast<double>(classes) + 1);
  kernel.extra = classes;
  return kernel;
}

KernelSpec load_batch_kernel(std::int64_t samples, std::int64_t pixels) {
  KernelSpec kernel = vector_kernel(KernelOp::load_batch, samples, 2 * static_cast<double>(pixels),
                                    (1 + float_bytes) * static_cast<double>(pixels));
  kernel.extra = pixels;
  return kernel;
}

KernelSpec update_kernel(std::int64_t parameters, bool momentum) {
  KernelSpec kernel = momentum ? vector_kernel(KernelOp::update, parameters, 4, 5 * float_bytes)
                               : vector_kernel(KernelOp::update, parameters, 2, 3 * float_bytes);
  kernel.extra = momentum ? 1 : 0;
  return kernel;
}

KernelSpec reduce_kernel(std::int64_t floats) {
  return vector_kernel(KernelOp::reduce, floats, 1, 3 * float_bytes);
}

KernelSpec copy_kernel(std::int64_t floats) {
  return vector_kernel(KernelOp::copy, floats, 0, 2 * float_bytes);
}

KernelSpec estimator_fit_kernel(std::int64_t window, std::int64_t monomials) {
  const double t = static_cast<double>(window);
  const double m = static_cast<double>(monomials);
  KernelSpec kernel;
  kernel.op = KernelOp::estimator_fit;
  kernel.count = window;
  kernel.extra = monomials;
  // Monomials of mean order 2 and their scaling, the Gram matrix of the dual (half of it), its
  // Cholesky factor, two triangular solves, and the weights.
  kernel.flops = 4 * t * m + t * t * m + t * t * t / 3 + 2 * t * t + 2 * t * m;
  kernel.bytes = double_bytes * (3 * t * m + 2 * t * t);
  return kernel;
}

KernelSpec candidates_kernel(std::int64_t candidates, std::int64_t monomials) {
  const double n = static_cast<double>(candidates);
  const double m = static_cast<double>(monomials);
  KernelSpec kernel;
  kernel.op = KernelOp::candidates;
  kernel.count = candidates;
  kernel.extra = monomials;
  // Two coordinates a monomial on average are drawn; then its product, scaling and weight.
  kernel.flops = n * m * (2 * (draw_operations + 2) + 6);
  kernel.bytes = double_bytes * 3 * n * m;
  return kernel;
}

KernelSpec fill_kernel(std::int64_t parameters) {
  return vector_kernel(KernelOp::fill, parameters, draw_operations + 2, 2 * float_bytes);
}

KernelSpec message_kernel(std::int64_t bytes) {
  return vector_kernel(KernelOp::message, bytes, 0, 2);
}

}  // namespace orrery
