// Host time of our stages against bare libtorch doing the same training step: plain operators,
// autograd and an update in place. What Orrery adds to a step should be nothing, or less.
//
//   OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 kernels_bench
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "agents/kernels.hh"
#include "agents/torch/calibrate.hh"
#include "base/philox.hh"
#include "tests/agents/models/bare_libtorch.hh"

namespace orrery {
namespace {

ModelSpec model_of(std::int64_t which) {
  switch (which) {
    case 0:
      return make_mlp({196, 24, 16, 16, 10}, LayerKind::tanh);
    case 1:
      return make_mlp({784, 128, 64, 10}, LayerKind::relu);
    default:
      return make_lenet5(28);
  }
}

struct Batch {
  Tensor input;
  std::vector<std::uint8_t> labels;
};

Batch batch_of(const ModelSpec& model, std::int64_t n) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), model.input_shape.begin(), model.input_shape.end());
  Batch batch{Tensor(shape), std::vector<std::uint8_t>(static_cast<std::size_t>(n))};
  Philox draws(1, "batch");
  for (float& value : batch.input.values()) value = static_cast<float>(draws.uniform(-1, 1));
  for (std::uint8_t& label : batch.labels) label = static_cast<std::uint8_t>(draws.below(10));
  return batch;
}

void label(benchmark::State& state, const ModelSpec& model) {
  state.SetLabel(model.name);
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

void bare_step(benchmark::State& state) {
  use_one_thread();
  const ModelSpec model = model_of(state.range(0));
  const Batch batch = batch_of(model, state.range(1));
  BareLibtorch net(model, initial_parameters(model, 0, model.layer_count(), 1));
  const at::Tensor x =
      at::from_blob(const_cast<float*>(batch.input.data()), batch.input.shape(), at::kFloat);
  const at::Tensor y =
      at::from_blob(const_cast<std::uint8_t*>(batch.labels.data()), {state.range(1)}, at::kByte)
          .to(at::kLong);
  std::vector<at::Tensor>& parameters = net.parameters();
  for (auto _ : state) {
    for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    at::cross_entropy_loss(net.forward(x), y).backward();
    c10::NoGradGuard guard;
    for (at::Tensor& parameter : parameters) parameter.add_(parameter.grad(), -0.01);
  }
  label(state, model);
}

void stage_step(benchmark::State& state) {
  const ModelSpec model = model_of(state.range(0));
  const Batch batch = batch_of(model, state.range(1));
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const int last = model.layer_count();
  const auto stage = kernels->make_stage(model, 0, last, initial_parameters(model, 0, last, 1));
  Tensor gradient;
  for (auto _ : state) {
    kernels->loss_gradient(stage->forward_train(batch.input), batch.labels, gradient);
    stage->backward(gradient, false);
    const std::span<float> parameters = stage->parameters();
    const std::span<float> gradients = stage->gradients();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= 0.01f * gradients[i];
  }
  label(state, model);
}

void bare_forward(benchmark::State& state) {
  use_one_thread();
  const ModelSpec model = model_of(state.range(0));
  const Batch batch = batch_of(model, state.range(1));
  BareLibtorch net(model, initial_parameters(model, 0, model.layer_count(), 1));
  const at::Tensor x =
      at::from_blob(const_cast<float*>(batch.input.data()), batch.input.shape(), at::kFloat);
  const c10::InferenceMode guard;
  for (auto _ : state) benchmark::DoNotOptimize(net.forward(x));
  label(state, model);
}

void stage_forward(benchmark::State& state) {
  const ModelSpec model = model_of(state.range(0));
  const Batch batch = batch_of(model, state.range(1));
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const int last = model.layer_count();
  const auto stage = kernels->make_stage(model, 0, last, initial_parameters(model, 0, last, 1));
  for (auto _ : state) benchmark::DoNotOptimize(stage->forward(batch.input));
  label(state, model);
}

void gemm(benchmark::State& state) {
  double flops = 0;
  for (auto _ : state) flops = measure_gemm_flops();
  state.counters["FLOP/s"] = flops;
  state.SetLabel(library_version());
}

// Arguments: model, batch.
BENCHMARK(bare_step)->ArgsProduct({{0, 1, 2}, {64}})->Unit(benchmark::kMicrosecond);
BENCHMARK(stage_step)->ArgsProduct({{0, 1, 2}, {64}})->Unit(benchmark::kMicrosecond);
BENCHMARK(bare_forward)->ArgsProduct({{0, 1, 2}, {2000}})->Unit(benchmark::kMicrosecond);
BENCHMARK(stage_forward)->ArgsProduct({{0, 1, 2}, {2000}})->Unit(benchmark::kMicrosecond);
BENCHMARK(gemm)->Iterations(1);

}  // namespace
}  // namespace orrery
