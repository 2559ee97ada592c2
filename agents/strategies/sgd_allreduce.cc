// Data-parallel SGD: every node has the whole model, computes the gradient of its part of the
// batch, and all sum them by a ring all-reduce before each takes the same step.
//
// Patarasuk & Yuan, JPDC 69(2), 2009 (ring); Goyal et al., arXiv 1706.02677 (data-parallel SGD).
//
// A slow node: all wait for it. A paused node: the same. A node that dies: the run ends with the
// reason on every other node, since no sum can be made without it.

#include <cmath>

#include "agents/collectives/ring.hh"
#include "agents/strategies/builtin.hh"
#include "agents/strategies/sgd.hh"

namespace orrery {
namespace {

constexpr std::uint32_t gradient_tag = 1;
// After the gradients in the summed vector: the loss, and votes to stop.
constexpr std::int64_t extras = 2;

class SgdAllReduce : public Strategy {
 public:
  Placement plan(const ClusterView& cluster, const WorkloadView& workload, const Options& options,
                 const StopRule&, std::uint64_t) const override {
    const int n = cluster.size();
    const std::int64_t batch = options.integer("batch");
    if (batch * n > workload.train_images)
      throw PlacementError("a global batch of " + std::to_string(n) + " × " +
                           std::to_string(batch) + " images is more than the training set's " +
                           std::to_string(workload.train_images) + "; make batch smaller");
    const ModelSpec& model = workload.model;
    const std::int64_t parameters = model.parameter_count();
    Placement placement;
    placement.schedule = "each step: 2(n − 1) = " + std::to_string(2 * (n - 1)) +
                         " rounds around the ring, " +
                         std::to_string((parameters + extras) * 4 / n) + " bytes a message";
    for (int rank = 0; rank < n; ++rank) {
      NodePlacement node;
      node.role = "worker " + std::to_string(rank + 1) + " of " + std::to_string(n);
      node.last_layer = model.layer_count();
      node.blocks = {{"all", {{0, parameters}}}};
      node.kernels = {load_batch_kernel(batch, model.elements_after(-1)),
                      forward_train_kernel(model, 0, model.layer_count(), batch),
                      loss_gradient_kernel(batch, model.classes),
                      backward_kernel(model, 0, model.layer_count(), batch),
                      copy_kernel(parameters),
                      update_kernel(parameters, options.number("momentum") > 0)};
      for (const KernelSpec& kernel : ring_kernels(n, parameters + extras))
        node.kernels.push_back(kernel);
      if (n > 1) node.sends_to = {(rank + 1) % n};
      placement.nodes.push_back(std::move(node));
    }
    return placement;
  }

  void run(Node& node) const override {
    const ModelSpec& model = node.model();
    const int layers = model.layer_count();
    const std::int64_t batch = node.options().integer("batch");
    const std::int64_t parameters = model.parameter_count();
    const int n = node.size();
    const std::string decay = node.options().text("decay");

    const auto stage = node.kernels().make_stage(model, 0, layers,
                                                 initial_parameters(model, 0, layers, node.seed()));
    SgdOptimizer optimizer(node.options().number("learning_rate"),
                           node.options().number("momentum"), parameters);
    SampleOrder order(node.seed(), node.workload().train_images, batch, n);
    const std::int64_t last = last_step(node.stop(), order.steps_per_epoch());
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(batch));
    // Worked out once: it would be uncharged work in each step.
    const KernelSpec load = load_batch_kernel(batch, model.elements_after(-1));
    const KernelSpec forward = forward_train_kernel(model, 0, layers, batch);
    const KernelSpec judge = loss_gradient_kernel(batch, model.classes);
    const KernelSpec backward = backward_kernel(model, 0, layers, batch);
    const KernelSpec gather = copy_kernel(parameters);
    const KernelSpec update = update_kernel(parameters, node.options().number("momentum") > 0);

    if (node.rank() == 0) node.snapshot(0, 0, stage->parameters());
    for (std::int64_t step = 1; step <= last; ++step) {
      Tensor input;
      node.compute(load, [&] {
        const auto indices = order.batch(step - 1, node.rank());
        input = make_batch(node.data(), node.data().train, indices, model.input_shape);
        for (std::size_t i = 0; i < indices.size(); ++i)
          labels[i] = node.data().train.labels[static_cast<std::size_t>(indices[i])];
      });
      Tensor logits, slope;
      double loss = 0;
      node.compute(forward, [&] { logits = stage->forward_train(input); });
      node.compute(judge, [&] { loss = node.kernels().loss_gradient(logits, labels, slope); });
      node.compute(backward, [&] { stage->backward(slope, false); });
      // A fresh vector each step: the ring may still be sending from the last one.
      Tensor sum;
      node.compute(gather, [&] {
        sum = Tensor({parameters + extras});
        const auto gradients = stage->gradients();
        std::copy(gradients.begin(), gradients.end(), sum.data());
      });
      // Time runs alike on all nodes, but they do not look at it at the same instant: rank 0
      // decides.
      const bool over =
          node.rank() == 0 && node.stop().time && node.now() - Instant{} >= *node.stop().time;
      sum.data()[parameters] = static_cast<float>(loss);
      sum.data()[parameters + 1] = over ? 1.0f : 0.0f;

      ring_all_reduce(node, sum, MessageKind::gradient, gradient_tag);

      const double mean_loss = static_cast<double>(sum.data()[parameters]) / n;
      if (!std::isfinite(mean_loss))
        throw Error("the loss is no longer finite at step " + std::to_string(step) +
                    "; a smaller learning_rate would help");
      const double progress = static_cast<double>(step - 1) / static_cast<double>(last);
      const double factor = rate_factor(decay, progress);
      node.compute(update, [&] {
        optimizer.step(stage->parameters(),
                       std::span<const float>(sum.data(), static_cast<std::size_t>(parameters)),
                       1.0 / n, factor);
      });
      node.count_samples(batch, batch);
      node.log(step, "step", mean_loss, batch, [&] {
        return Node::Figures{{"learning_rate_factor", factor}};
      });
      const bool reached = node.stop().loss && mean_loss <= *node.stop().loss;
      const bool done = step == last || sum.data()[parameters + 1] > 0 || reached;
      if (node.rank() == 0 && (done || node.evaluation_due(step)))
        node.snapshot(step, 0, stage->parameters());
      if (done) break;
    }
  }
};

}  // namespace

std::int64_t last_step(const StopRule& stop, std::int64_t steps_per_epoch) {
  std::int64_t last = stop.steps.value_or(std::numeric_limits<std::int64_t>::max());
  if (stop.epochs)
    last = std::min(last, static_cast<std::int64_t>(
                              std::ceil(*stop.epochs * static_cast<double>(steps_per_epoch))));
  return last;
}

StrategyInfo sgd_allreduce_info() {
  return {.name = "sgd_allreduce",
          .description = "synchronous data-parallel SGD, gradients summed by ring all-reduce",
          .paper = "Patarasuk & Yuan, JPDC 69(2), 2009; Goyal et al., arXiv 1706.02677",
          .options = sgd_options(),
          .stops = {"steps", "epochs", "time", "loss"},
          .make = [] { return std::make_unique<SgdAllReduce>(); }};
}

}  // namespace orrery
