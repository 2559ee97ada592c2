// Stages against plain torch::nn modules with autograd: another implementation, the same
// parameters.
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "agents/kernels.hh"
#include "base/philox.hh"
#include "tests/agents/models/bare_libtorch.hh"

namespace orrery {
namespace {

void expect_equal(std::span<const float> ours, const at::Tensor& theirs, const char* what) {
  ASSERT_EQ(static_cast<std::int64_t>(ours.size()), theirs.numel()) << what;
  const at::Tensor mine =
      at::from_blob(const_cast<float*>(ours.data()), {theirs.numel()}, at::kFloat);
  EXPECT_LE(mine.sub(theirs.reshape({-1})).abs().max().item<float>(), 1e-5f) << what;
}

void compare(const ModelSpec& model, std::int64_t n) {
  const int last = model.layer_count();
  const std::vector<float> start = initial_parameters(model, 0, last, 9);
  BareLibtorch net(model, start);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, last, start);

  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), model.input_shape.begin(), model.input_shape.end());
  Tensor input(shape);
  std::vector<std::uint8_t> labels;
  Philox draws(2, "data");
  for (float& value : input.values()) value = static_cast<float>(draws.uniform(-1, 1));
  for (std::int64_t i = 0; i < n; ++i) {
    labels.push_back(
        static_cast<std::uint8_t>(draws.below(static_cast<std::uint32_t>(model.classes))));
  }

  const at::Tensor x =
      at::from_blob(input.data(), shape, at::kFloat).clone().set_requires_grad(true);
  const at::Tensor y = at::from_blob(labels.data(), {n}, at::kByte).to(at::kLong);
  const at::Tensor logits = net.forward(x);
  const at::Tensor loss = at::cross_entropy_loss(logits, y);
  loss.backward();

  expect_equal(stage->forward(input).values(), logits.detach(), "forward");
  const Tensor output = stage->forward_train(input);
  expect_equal(output.values(), logits.detach(), "forward_train");
  Tensor gradient;
  EXPECT_NEAR(kernels->loss_gradient(output, labels, gradient), loss.item<double>(), 1e-5);
  EXPECT_NEAR(kernels->loss(output, labels), loss.item<double>(), 1e-5);
  EXPECT_EQ(kernels->correct(output, labels), logits.argmax(1).eq(y).sum().item<std::int64_t>());
  const Tensor input_gradient = stage->backward(gradient, true);
  expect_equal(input_gradient.values(), x.grad(), "input gradient");
  std::vector<at::Tensor> flat;
  for (const at::Tensor& parameter : net.parameters()) {
    flat.push_back(parameter.grad().reshape({-1}));
  }
  expect_equal(stage->gradients(), at::cat(flat), "parameter gradient");
}

TEST(Reference, MlpTanh) { compare(make_mlp({196, 24, 16, 16, 10}, LayerKind::tanh), 64); }
TEST(Reference, MlpRelu) { compare(make_mlp({196, 32, 10}, LayerKind::relu), 1000); }
TEST(Reference, Lenet5) { compare(make_lenet5(28), 16); }
TEST(Reference, Lenet5OnSmallImages) { compare(make_lenet5(14), 64); }

TEST(Reference, ActivationsAndPoolingInUnusualOrder) {
  ModelSpec model;
  model.name = "odd";
  model.input_shape = {2, 9, 9};
  model.classes = 4;
  model.layers = {
      {"tanh1", LayerKind::tanh, 0, 0, 0, 0},      {"tanh2", LayerKind::tanh, 0, 0, 0, 0},
      {"conv", LayerKind::conv2d, 2, 3, 3, 1},     {"pool", LayerKind::max_pool2d, 0, 0, 2, 0},
      {"relu1", LayerKind::relu, 0, 0, 0, 0},      {"tanh3", LayerKind::tanh, 0, 0, 0, 0},
      {"flatten", LayerKind::flatten, 0, 0, 0, 0}, {"relu2", LayerKind::relu, 0, 0, 0, 0},
      {"linear", LayerKind::linear, 48, 4, 0, 0},  {"tanh4", LayerKind::tanh, 0, 0, 0, 0}};
  compare(model, 7);
}

}  // namespace
}  // namespace orrery
