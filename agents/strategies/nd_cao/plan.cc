#include "agents/strategies/nd_cao/plan.hh"

#include <algorithm>

#include "agents/strategies/nd_cao/charged.hh"
#include "agents/strategies/nd_cao/coordinates.hh"
#include "agents/strategies/nd_cao/partition.hh"

namespace orrery::nd_cao {
namespace {

constexpr std::int64_t result_bytes = 16;
constexpr std::int64_t note_bytes = 8;
constexpr std::int64_t forward_head = 16;

void add(std::vector<KernelSpec>& kernels, const KernelSpec& kernel) {
  if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
}

void check_workload(const WorkloadView& workload, const Settings& settings) {
  const ModelSpec& model = workload.model;
  if (workload.objective_images < 1) {
    throw PlacementError("nd_cao needs a fixed objective set; write objective_images: 2000");
  }
  if (workload.train_images > 0 && workload.objective_images > workload.train_images) {
    throw PlacementError("the objective set of " + std::to_string(workload.objective_images) +
                         " images is larger than the training set; write at most " +
                         std::to_string(workload.train_images));
  }
  if (settings.input_rank == 0) return;
  const LayerSpec& layer =
      model.layers.at(static_cast<std::size_t>(model.parametric_layers().at(0)));
  if (layer.kind != LayerKind::linear || layer.in != model.elements_after(-1)) {
    throw PlacementError("input_rank needs a model whose first layer is linear; write 0");
  }
  if (settings.input_rank > layer.in || settings.input_rank > workload.objective_images) {
    throw PlacementError("input_rank " + std::to_string(settings.input_rank) +
                         " is more than the inputs have; write at most " +
                         std::to_string(std::min(layer.in, workload.objective_images)));
  }
}

}  // namespace

std::vector<std::pair<KernelSpec, std::int64_t>> component_kernels(std::int64_t samples,
                                                                   std::int64_t features,
                                                                   std::int64_t rank) {
  constexpr std::int64_t piece = 20;
  const std::int64_t products = features * (features + 1) / 2;
  return {{reduce_kernel(piece * products), (samples + piece - 1) / piece},
          {reduce_kernel(rank * features * features), subspace_rounds}};
}

Placement make_plan(const ClusterView& cluster, const WorkloadView& workload,
                    const Settings& settings, std::uint64_t seed) {
  check_workload(workload, settings);
  const ModelSpec& model = workload.model;
  const std::int64_t samples = workload.objective_images;
  const auto stages = cut_layers(cluster, model, settings.balance_by_flops);
  const int p = cluster.size();

  Placement placement;
  for (int i = 0; i < p; ++i) {
    NodePlacement node;
    node.role = "stage " + std::to_string(i + 1) + " of " + std::to_string(p);
    std::tie(node.first_layer, node.last_layer) = stages[static_cast<std::size_t>(i)];
    node.blocks = cut_blocks(model, node.first_layer, node.last_layer, settings.partition,
                             settings.blocks_per_node, seed);

    std::vector<KernelSpec>& kernels = node.kernels;
    add(kernels, forward_kernel(model, node.first_layer, node.last_layer, samples));
    if (i == 0) add(kernels, load_batch_kernel(samples, model.elements_after(-1)));
    if (i == p - 1) add(kernels, loss_kernel(samples, model.classes));
    if (i == 0 && settings.input_rank > 0) {
      for (const auto& [kernel, times] :
           component_kernels(samples, model.elements_after(-1), settings.input_rank)) {
        add(kernels, kernel);
      }
    }
    if (settings.block.estimator) {
      for (const KernelSpec& kernel : fit_kernels(settings.block)) add(kernels, kernel);
      add(kernels, score_kernel(settings.block));
    }
    for (const BlockSpec& block : node.blocks) {
      add(kernels, fill_kernel(coordinate_count(block, model, settings.input_rank)));
      add(kernels, write_kernel(block, model, settings.input_rank));
    }
    const auto activation_bytes = [&](int layers) {
      return forward_head + 4 * samples * model.elements_after(layers - 1);
    };
    if (p > 1) {
      if (i > 0) add(kernels, message_kernel(activation_bytes(node.first_layer)));
      if (i < p - 1) add(kernels, message_kernel(activation_bytes(node.last_layer)));
      add(kernels, message_kernel(result_bytes));
      if (settings.mode == Mode::async) add(kernels, message_kernel(note_bytes));
    }

    if (i == p - 1) {
      for (int peer = 0; peer < i; ++peer) node.sends_to.push_back(peer);
    } else {
      if (settings.mode == Mode::async && i > 0) node.sends_to.push_back(0);
      node.sends_to.push_back(i + 1);
    }
    placement.nodes.push_back(std::move(node));
  }
  placement.schedule =
      settings.mode == Mode::sync
          ? "each evaluation: activations down the chain, the loss from the last node to each, one "
            "move a block"
          : "dynamic: up to " + std::to_string(settings.in_flight) +
                " evaluations under way; blocks move when their version has a loss";
  return placement;
}

}  // namespace orrery::nd_cao
