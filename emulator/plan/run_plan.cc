#include "emulator/plan/run_plan.hh"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "agents/data/dataset.hh"
#include "emulator/config/network.hh"

namespace orrery::emulator {
namespace {

// Agents compute with the nodes in the order of the placement, if the file gives one.
std::vector<const config::ClusterNode*> nodes_by_rank(const config::Experiment& experiment,
                                                      const config::Run& run) {
  std::vector<const config::ClusterNode*> nodes;
  if (run.placement.empty()) {
    for (const config::ClusterNode& node : experiment.cluster.nodes) nodes.push_back(&node);
    return nodes;
  }
  for (const config::Stage& stage : run.placement)
    for (const config::ClusterNode& node : experiment.cluster.nodes)
      if (node.name == stage.node) nodes.push_back(&node);
  return nodes;
}

double finite_or_free(double rate) { return std::isfinite(rate) ? rate : 0; }

RooflineCost roofline_of(const config::Device& device) {
  RooflineCost cost;
  cost.flops_per_second = finite_or_free(device.flops.per_second);
  cost.bytes_per_second = finite_or_free(device.memory_bandwidth.per_second);
  cost.message_overhead = device.message_overhead;
  return cost;
}

WorkloadSpec workload_of(const config::Workload& workload) {
  WorkloadSpec spec;
  spec.model.kind = workload.model == config::ModelKind::mlp ? "mlp" : "lenet5";
  spec.model.widths = workload.layers;
  spec.model.activation = workload.activation == config::Activation::relu ? "relu" : "tanh";
  spec.dataset = workload.dataset;
  spec.folder = workload.path.empty() ? packaged_dataset_folder(workload.dataset)
                                      : std::filesystem::absolute(workload.path).string();
  spec.pool = static_cast<int>(workload.pool);
  const DatasetSizes sizes = idx_dataset_sizes(workload.dataset, spec.folder);
  if (sizes.height != sizes.width)
    throw ValueError(spec.folder + " holds images of " + std::to_string(sizes.height) + " x " +
                     std::to_string(sizes.width) + "; the models take square ones only");
  spec.edge = sizes.height / workload.pool;
  spec.train_images = std::min(workload.train_images.value_or(sizes.train), sizes.train);
  spec.test_images = std::min(workload.test_images.value_or(sizes.test), sizes.test);
  spec.objective_images = workload.objective_images;
  if (spec.objective_images > spec.train_images)
    throw ValueError("objective_images: " + std::to_string(spec.objective_images) +
                     " is more than the " + std::to_string(spec.train_images) +
                     " training images; make it smaller");
  const ModelSpec model = make_model(spec.model, spec.edge);
  const std::int64_t pixels = spec.edge * spec.edge;
  if (model.elements_after(-1) != pixels)
    throw ValueError("layers: the model takes " + std::to_string(model.elements_after(-1)) +
                     " inputs, but an image has " + std::to_string(spec.edge) + "×" +
                     std::to_string(spec.edge) + " = " + std::to_string(pixels) +
                     " pixels after pooling; begin with " + std::to_string(pixels) +
                     ", or change pool");
  return spec;
}

StopRule stop_of(const config::Stop& stop) {
  return {stop.evaluations, stop.steps, stop.epochs, stop.time, stop.loss};
}

std::vector<netshape::LinkChange> link_changes(const std::vector<TimedAction>& timeline) {
  std::vector<netshape::LinkChange> changes;
  for (const TimedAction& action : timeline)
    if (const auto* shape = std::get_if<ShapeLinks>(&action.action))
      changes.insert(changes.end(), shape->changes.begin(), shape->changes.end());
  return changes;
}

// Guest memory: kernel and page tables; libraries and the page cache of their files, once; the data
// set, once; and a heap for each agent, whose largest part is activations and what is in flight.
Bytes guest_memory(const RunSpec& spec, const Placement& placement) {
  constexpr double mib = 1024.0 * 1024;
  const ModelSpec model = spec.workload.view().model;
  const double pixels = static_cast<double>(model.elements_after(-1));
  double bytes = 700 * mib;
  bytes +=
      70000.0 * (pixels + static_cast<double>(spec.workload.pool * spec.workload.pool) * pixels);
  for (const NodePlacement& node : placement.nodes) {
    double largest = 0;
    for (const KernelSpec& kernel : node.kernels) largest = std::max(largest, kernel.bytes);
    bytes += 80 * mib + 8 * largest + 16 * static_cast<double>(model.parameter_count()) * 4;
  }
  for (const NodeSpec& node : spec.nodes)
    for (const std::int64_t buffer : node.socket_buffers) bytes += static_cast<double>(buffer);
  return Bytes::mib(static_cast<std::int64_t>(bytes / mib) + 1);
}

std::string decimals(double value, int digits) {
  std::ostringstream text;
  text.precision(digits);
  text << std::fixed << value;
  return text.str();
}

}  // namespace

RunPlan plan_run(const config::Experiment& experiment) {
  if (experiment.runs.size() != 1) throw std::logic_error("plan_run() takes one run");
  const config::Run& run = experiment.runs.front();
  const StrategyInfo* info = find_strategy(run.strategy);
  if (!info) throw ValueError("'" + run.strategy + "' is not a strategy");

  RunPlan plan;
  plan.experiment = experiment;
  plan.timeline = expand_timeline(experiment);
  const std::vector<netshape::LinkChange> changes = link_changes(plan.timeline);
  plan.network = netshape::plan(config::topology_of(experiment.cluster.network), run.seed, changes);

  RunSpec& spec = plan.spec;
  spec.run = run.name;
  spec.strategy = run.strategy;
  spec.seed = run.seed;
  spec.options = run.options;
  spec.stop = stop_of(run.stop);
  spec.evaluate_every = run.evaluate_every;
  if (experiment.record.first_spans) spec.span_limit = *experiment.record.first_spans;
  spec.workload = workload_of(experiment.workload);
  const auto nodes = nodes_by_rank(experiment, run);
  for (const config::Stage& stage : run.placement)
    spec.stage_layers.push_back(static_cast<int>(stage.layers));
  for (const config::ClusterNode* node : nodes) {
    NodeSpec entry;
    entry.name = node->name;
    entry.address = plan.network.vertex(node->name).address;
    entry.speed = experiment.cluster.speed_of(*node);
    entry.roofline = roofline_of(experiment.cluster.device_of(*node));
    entry.schedule = speed_schedule(experiment, node->name);
    for (const config::ClusterNode* peer : nodes)
      entry.socket_buffers.push_back(
          peer == node ? 0 : plan.network.path(node->name, peer->name).socket_buffer.value);
    spec.nodes.push_back(std::move(entry));
  }
  plan.placement =
      info->make()->plan(spec.cluster(), spec.workload.view(), spec.options, spec.stop, spec.seed);
  plan.guest_memory = guest_memory(spec, plan.placement);
  return plan;
}

std::string to_text(const RunPlan& plan) {
  std::ostringstream text;
  const RunSpec& spec = plan.spec;
  const ModelSpec model = spec.workload.view().model;
  text << "run " << spec.run << ": " << spec.strategy << ", seed " << spec.seed << "\n"
       << "model " << model.name << ": " << model.parameter_count() << " parameters\n"
       << "messages: " << plan.placement.schedule << "\n\n";
  for (std::size_t rank = 0; rank < plan.placement.nodes.size(); ++rank) {
    const NodePlacement& node = plan.placement.nodes[rank];
    text << spec.nodes[rank].name << ": " << node.role << ", layers " << node.first_layer << " to "
         << node.last_layer - 1 << ", " << model.parameter_count(node.first_layer, node.last_layer)
         << " parameters in " << node.blocks.size() << " block"
         << (node.blocks.size() == 1 ? "" : "s") << ", address " << spec.nodes[rank].address
         << "\n";
    const double speed = spec.nodes[rank].speed;
    for (const KernelSpec& kernel : node.kernels) {
      text << "    " << kernel.key() << ": ";
      if (spec.profile.empty())
        text << decimals(spec.nodes[rank].roofline.base(kernel).in_milliseconds() / speed, 4)
             << " ms\n";
      else
        text << decimals(ProfileCost(spec.profile).base(kernel).in_milliseconds() / speed, 4)
             << " ms\n";
    }
  }
  text << "\n" << netshape::to_text(plan.network);
  if (!plan.timeline.empty()) text << "\ntimeline\n";
  for (const TimedAction& action : plan.timeline)
    text << "  " << decimals(action.at.in_seconds(), 3) << " s  " << action.event << ": "
         << action.what << "\n";
  text << "\nguest memory " << to_string(plan.guest_memory) << "\n";
  return text.str();
}

config::StrategyCatalog strategy_catalog() {
  config::StrategyCatalog catalog;
  for (const StrategyInfo& info : strategies()) {
    config::StrategyInfo entry;
    entry.description = info.description;
    entry.paper = info.paper;
    entry.options = info.options;
    entry.progress =
        info.counts_evaluations ? config::Progress::evaluations : config::Progress::steps;
    entry.staged = info.staged;
    entry.node_options = info.node_options;
    catalog[info.name] = std::move(entry);
  }
  return catalog;
}

}  // namespace orrery::emulator
