#include "agents/strategies/nd_cao/charged.hh"

#include <algorithm>
#include <memory>
#include <utility>

#include "agents/profile.hh"
#include "base/philox.hh"

namespace orrery::nd_cao {
namespace {

constexpr std::int64_t sizes = 32;
constexpr double step = 0.1;

/// A block that has made and been told the losses of `settings.window` versions.
std::shared_ptr<Block> seasoned_block(const BlockSettings& settings, std::int64_t parameters) {
  const auto count = static_cast<std::size_t>(parameters);
  auto block = std::make_shared<Block>("profiled", 1, settings, std::vector<float>(count, 0.5f),
                                       std::vector<float>(count, 1.0f));
  Philox losses(1, "profiled losses");
  for (std::int64_t k = 0; k < settings.window; ++k) {
    block->in_force(k);
    block->result(k, losses.uniform(), k == 0);
    block->fill(step);
  }
  return block;
}

/// Monomials hardly share a coordinate in a block of this size: as in a large layer.
std::int64_t roomy(std::int64_t monomials) { return 16 * monomials; }

}  // namespace

KernelSpec fit_kernel(const BlockSettings& settings, std::int64_t entries) {
  const std::int64_t grain = (settings.window + sizes - 1) / sizes;
  const std::int64_t charged = (entries + grain - 1) / grain * grain;
  return estimator_fit_kernel(std::min(charged, settings.window), settings.monomials);
}

std::vector<KernelSpec> fit_kernels(const BlockSettings& settings) {
  std::vector<KernelSpec> kernels;
  for (std::int64_t entries = smallest_window; entries <= settings.window; ++entries) {
    const KernelSpec kernel = fit_kernel(settings, entries);
    if (kernels.empty() || !(kernels.back() == kernel)) kernels.push_back(kernel);
  }
  return kernels;
}

KernelSpec score_kernel(const BlockSettings& settings) {
  return candidates_kernel(settings.candidates + settings.top, settings.monomials);
}

void register_profiled_kernels() {
  register_profiled(KernelOp::estimator_fit, [](const KernelSpec& kernel) {
    BlockSettings settings;
    settings.window = kernel.count;
    settings.monomials = kernel.extra;
    return [block = seasoned_block(settings, roomy(kernel.extra))] { block->fit(); };
  });
  register_profiled(KernelOp::candidates, [](const KernelSpec& kernel) {
    BlockSettings settings;
    settings.monomials = kernel.extra;
    settings.top = 1;
    settings.candidates = kernel.count - settings.top;
    const auto block = seasoned_block(settings, roomy(kernel.extra));
    block->fit();
    return [block] { block->score(step); };
  });
  register_profiled(KernelOp::fill, [](const KernelSpec& kernel) {
    return [block = seasoned_block({}, kernel.count)] { block->fill(step); };
  });
}

}  // namespace orrery::nd_cao
