#include "tests/agents/strategies/nd_cao/run_nd_cao.hh"

#include <gtest/gtest.h>

#include "tests/support/reference_kernels.hh"

namespace orrery::test {
namespace {

const Dataset& toy_data() {
  static const Dataset data = toy_dataset(4, 3, 60);
  return data;
}

}  // namespace

ToyRun::ToyRun(int nodes, std::int64_t evaluations) {
  for (int i = 0; i < nodes; ++i) spec.cluster.nodes.push_back({"board" + std::to_string(i), 1});
  spec.workload.model = make_mlp({16, 6, 5, 4, 3}, LayerKind::tanh);
  spec.workload.train_images = 60;
  spec.workload.objective_images = 30;
  spec.data = &toy_data();
  spec.options = Options(nd_cao_info().options);
  spec.stop.evaluations = evaluations;
  spec.evaluate_every = 10;
  spec.link = {Duration::milliseconds(2), 0};
}

ToyRun& ToyRun::set(const std::string& name, OptionValue value) {
  spec.options.set(name, std::move(value));
  return *this;
}

SimResult ToyRun::run() const { return run_cluster(*nd_cao_info().make(), spec); }

SimResult ToyRun::run_ok() const {
  SimResult result = run();
  EXPECT_TRUE(result.ok()) << result.errors();
  return result;
}

double whole_loss(const ToyRun& run, const std::vector<float>& parameters) {
  const auto kernels = make_reference_kernels();
  const ModelSpec& model = run.spec.workload.model;
  const auto stage = kernels->make_stage(model, 0, model.layer_count(), parameters);
  const std::int64_t n = run.spec.workload.objective_images;
  const Tensor input = make_batch(*run.spec.data, run.spec.data->train, 0, n, model.input_shape);
  return kernels->loss(stage->forward(input),
                       std::span(run.spec.data->train.labels).first(static_cast<std::size_t>(n)));
}

std::vector<double> losses(const SimResult& result) {
  std::vector<double> values;
  for (const wire::Step& row : result.nodes.back().rows("evaluation")) values.push_back(row.loss());
  return values;
}

}  // namespace orrery::test
