// bare_training MODEL BATCH STEPS: as many training steps on bare libtorch as an experiment of
// engine_bench has its nodes do: forward, loss, backward, update. MODEL is lenet5, or the widths of
// an MLP joined by commas.

#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "agents/kernels.hh"
#include "agents/torch/calibrate.hh"
#include "base/philox.hh"
#include "tests/agents/models/bare_libtorch.hh"

namespace {

using namespace orrery;

ModelSpec model_of(const std::string& text) {
  if (text == "lenet5") return make_lenet5(28);
  std::vector<std::int64_t> widths;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) widths.push_back(std::atoll(word.c_str()));
  return make_mlp(widths, LayerKind::tanh);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("bare_training MODEL BATCH STEPS\n", stderr);
    return 2;
  }
  use_one_thread();
  const ModelSpec model = model_of(argv[1]);
  const std::int64_t batch = std::atoll(argv[2]);
  const std::int64_t steps = std::atoll(argv[3]);
  BareLibtorch net(model, initial_parameters(model, 0, model.layer_count(), 1));
  std::vector<std::int64_t> shape{batch};
  shape.insert(shape.end(), model.input_shape.begin(), model.input_shape.end());
  Tensor input(shape);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(batch));
  Philox draws(1, "batch");
  for (float& value : input.values()) value = static_cast<float>(draws.uniform(-1, 1));
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(draws.below(10));
  const at::Tensor x = at::from_blob(input.data(), input.shape(), at::kFloat);
  const at::Tensor y = at::from_blob(labels.data(), {batch}, at::kLong);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (at::Tensor& parameter : net.parameters()) parameter.mutable_grad().reset();
    at::cross_entropy_loss(net.forward(x), y).backward();
    const c10::NoGradGuard guard;
    for (at::Tensor& parameter : net.parameters()) parameter.add_(parameter.grad(), -0.01);
  }
  return 0;
}
