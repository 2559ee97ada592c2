// What is charged: a kernel is anything that a real node would compute. Its specification is a
// small value with a canonical text, under which a profile keeps its measured time.
#pragma once

#include <cstdint>
#include <string>

#include "agents/models/model.hh"

namespace orrery {

enum class KernelOp {
  forward,        ///< layers [first, last) on `count` samples, no gradient kept
  forward_train,  ///< the same, keeping what backward needs
  backward,       ///< gradients of parameters and of the input, `count` samples
  loss,           ///< cross-entropy of `count` rows
  loss_gradient,  ///< the same with its gradient
  load_batch,     ///< uint8 images to float32, `count` samples
  update,         ///< an optimiser's step over `count` parameters
  reduce,         ///< y += x over `count` floats
  copy,           ///< `count` floats
  estimator_fit,  ///< ND-CAO: features and ridge fit, `count` = T window entries, `extra` = M
                  ///< monomials
  candidates,     ///< ND-CAO: `count` = N candidates scored on `extra` = M monomials
  fill,           ///< ND-CAO: one random candidate over `count` parameters
  message,        ///< (de)serialise one message of `count` bytes
};

const char* to_string(KernelOp op);

struct KernelSpec {
  KernelOp op = KernelOp::copy;
  std::int64_t count = 0;
  std::int64_t extra = 0;
  int first = 0;  ///< layers [first, last) of the model, for forward and backward
  int last = 0;
  double flops = 0;  ///< of one execution
  double bytes = 0;  ///< memory traffic of one execution: read + written

  /// Canonical and unique within a model, e.g. "forward[0,2)x2000", "reduce x1234".
  std::string key() const;
  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

KernelSpec forward_kernel(const ModelSpec& model, int first, int last, std::int64_t samples);
KernelSpec forward_train_kernel(const ModelSpec& model, int first, int last, std::int64_t samples);
KernelSpec backward_kernel(const ModelSpec& model, int first, int last, std::int64_t samples);
KernelSpec loss_kernel(std::int64_t rows, std::int64_t classes);
KernelSpec loss_gradient_kernel(std::int64_t rows, std::int64_t classes);
KernelSpec load_batch_kernel(std::int64_t samples, std::int64_t pixels);
KernelSpec update_kernel(std::int64_t parameters, bool momentum);
KernelSpec reduce_kernel(std::int64_t floats);
KernelSpec copy_kernel(std::int64_t floats);
KernelSpec estimator_fit_kernel(std::int64_t window, std::int64_t monomials);
KernelSpec candidates_kernel(std::int64_t candidates, std::int64_t monomials);
KernelSpec fill_kernel(std::int64_t parameters);
KernelSpec message_kernel(std::int64_t bytes);

}  // namespace orrery
