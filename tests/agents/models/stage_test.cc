// Stages against themselves: however a model is cut, the numbers are those of the whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "agents/kernels.hh"
#include "agents/torch/calibrate.hh"
#include "base/philox.hh"

namespace orrery {
namespace {

Tensor random_input(const ModelSpec& model, std::int64_t n) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), model.input_shape.begin(), model.input_shape.end());
  Tensor input(shape);
  Philox draws(11, "input");
  for (float& value : input.values()) value = static_cast<float>(draws.uniform(-1, 1));
  return input;
}

std::vector<std::uint8_t> random_labels(const ModelSpec& model, std::int64_t n) {
  Philox draws(11, "labels");
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(n));
  for (std::uint8_t& label : labels) {
    label = static_cast<std::uint8_t>(draws.below(static_cast<std::uint32_t>(model.classes)));
  }
  return labels;
}

struct Outcome {
  double forward_loss = 0;  ///< through forward()
  double loss = 0;          ///< through forward_train()
  std::vector<float> gradient;
  std::vector<float> input_gradient;
};

/// One step of a chain of stages cut before the layers in `cuts`; the tensors go from stage to
/// stage as they would from node to node.
Outcome run_chain(const ModelSpec& model, const std::vector<int>& cuts, std::int64_t n) {
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<int> edges{0};
  edges.insert(edges.end(), cuts.begin(), cuts.end());
  edges.push_back(model.layer_count());
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    stages.push_back(kernels->make_stage(model, edges[i], edges[i + 1],
                                         initial_parameters(model, edges[i], edges[i + 1], 5)));
  }
  const std::vector<std::uint8_t> labels = random_labels(model, n);

  Outcome outcome;
  Tensor x = random_input(model, n);
  for (const auto& stage : stages) x = stage->forward(x);
  outcome.forward_loss = kernels->loss(x, labels);

  x = random_input(model, n);
  for (const auto& stage : stages) x = stage->forward_train(x);
  Tensor gradient;
  outcome.loss = kernels->loss_gradient(x, labels, gradient);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    gradient = (*stage)->backward(gradient, true);
  }
  outcome.input_gradient.assign(gradient.values().begin(), gradient.values().end());
  for (const auto& stage : stages) {
    const std::span<float> part = stage->gradients();
    outcome.gradient.insert(outcome.gradient.end(), part.begin(), part.end());
  }
  return outcome;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  float worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(worst, 1e-5f) << what;
}

/// Every way to cut the model into 1 … `most` stages, at any layers.
void expect_every_placement_equal(const ModelSpec& model, int most, std::int64_t n) {
  const Outcome whole = run_chain(model, {}, n);
  EXPECT_NEAR(whole.forward_loss, whole.loss, 1e-6);
  int placements = 0;
  const unsigned subsets = 1u << (model.layer_count() - 1);
  for (unsigned subset = 1; subset < subsets; ++subset) {
    std::vector<int> cuts;
    std::string name = "cut before";
    for (int layer = 1; layer < model.layer_count(); ++layer) {
      if ((subset >> (layer - 1) & 1) == 0) continue;
      cuts.push_back(layer);
      name += " " + std::to_string(layer);
    }
    if (static_cast<int>(cuts.size()) >= most) continue;
    ++placements;
    const Outcome cut = run_chain(model, cuts, n);
    EXPECT_NEAR(cut.loss, whole.loss, 1e-5) << name;
    EXPECT_NEAR(cut.forward_loss, whole.loss, 1e-5) << name;
    expect_near(cut.gradient, whole.gradient, name);
    expect_near(cut.input_gradient, whole.input_gradient, name);
  }
  EXPECT_GT(placements, 0);
}

TEST(Placement, EveryCutOfAnMlpOfFourStages) {
  expect_every_placement_equal(make_mlp({49, 24, 16, 16, 10}, LayerKind::tanh), 7, 33);
  expect_every_placement_equal(make_mlp({49, 24, 16, 16, 10}, LayerKind::relu), 7, 33);
}

TEST(Placement, EveryCutOfLenet5IntoUpToThreeStages) {
  expect_every_placement_equal(make_lenet5(28), 3, 5);
}

TEST(Placement, EveryCutOfLenet5OnSmallImages) {
  expect_every_placement_equal(make_lenet5(14), 12, 3);
}

/// Central differences of the loss in double precision would need another implementation; in float
/// they are good to a few parts in a thousand of the largest gradient.
void expect_numerical_gradient(const ModelSpec& model, std::int64_t n) {
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, model.layer_count(),
                                         initial_parameters(model, 0, model.layer_count(), 3));
  const Tensor input = random_input(model, n);
  const std::vector<std::uint8_t> labels = random_labels(model, n);
  Tensor gradient;
  kernels->loss_gradient(stage->forward_train(input), labels, gradient);
  stage->backward(gradient, false);
  const std::vector<float> analytic(stage->gradients().begin(), stage->gradients().end());
  float largest = 0;
  for (const float g : analytic) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0);

  Philox draws(1, "which");
  for (int check = 0; check < 150; ++check) {
    const std::size_t i = draws.below(static_cast<std::uint32_t>(analytic.size()));
    float& parameter = stage->parameters()[i];
    const float before = parameter;
    constexpr float h = 1e-2f;
    parameter = before + h;
    const double above = kernels->loss(stage->forward(input), labels);
    parameter = before - h;
    const double below = kernels->loss(stage->forward(input), labels);
    parameter = before;
    EXPECT_NEAR((above - below) / (2 * static_cast<double>(h)), static_cast<double>(analytic[i]),
                0.01 * static_cast<double>(largest))
        << "parameter " << i;
  }
}

TEST(Gradient, AgreesWithDifferences) {
  expect_numerical_gradient(make_mlp({12, 9, 7, 5}, LayerKind::tanh), 8);
  expect_numerical_gradient(make_lenet5(14), 4);
}

TEST(Gradient, IsWrittenNotAdded) {
  const ModelSpec model = make_mlp({12, 9, 5}, LayerKind::tanh);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, 3, initial_parameters(model, 0, 3, 3));
  const Tensor input = random_input(model, 70);
  Tensor ones({70, 5});
  std::fill_n(ones.data(), ones.count(), 1.0f);
  stage->forward_train(input);
  stage->backward(ones, false);
  const std::vector<float> first(stage->gradients().begin(), stage->gradients().end());
  stage->forward_train(input);
  const Tensor input_gradient = stage->backward(ones, true);
  const std::vector<float> second(stage->gradients().begin(), stage->gradients().end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(input_gradient.shape(), (std::vector<std::int64_t>{70, 12}));
  // The bias of the last layer takes the sum of its output's gradient, over more than one block.
  EXPECT_FLOAT_EQ(second.back(), 70);
}

TEST(Gradient, AnEvaluationBetweenForwardAndBackwardChangesNothing) {
  for (const ModelSpec& model : {make_mlp({12, 9, 5}, LayerKind::tanh), make_lenet5(14)}) {
    const std::unique_ptr<Kernels> kernels = make_torch_kernels();
    const int last = model.layer_count();
    const auto stage = kernels->make_stage(model, 0, last, initial_parameters(model, 0, last, 3));
    const Tensor input = random_input(model, 6);
    Tensor gradient;
    const std::vector<std::uint8_t> labels = random_labels(model, 6);
    kernels->loss_gradient(stage->forward_train(input), labels, gradient);
    stage->backward(gradient, false);
    const std::vector<float> plain(stage->gradients().begin(), stage->gradients().end());
    stage->forward_train(input);
    Tensor other = input.clone();
    for (float& value : other.values()) value += 1;
    stage->forward(other);
    stage->backward(gradient, false);
    EXPECT_EQ(std::vector<float>(stage->gradients().begin(), stage->gradients().end()), plain);
  }
}

TEST(StageMemory, ReturnedTensorsAreNotWrittenAgain) {
  const ModelSpec model = make_mlp({12, 9, 5}, LayerKind::tanh);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, 2, initial_parameters(model, 0, 2, 3));
  const Tensor input = random_input(model, 6);
  const Tensor output = stage->forward_train(input);
  const Tensor kept = output.clone();
  Tensor grad({6, 9});
  std::fill_n(grad.data(), grad.count(), 1.0f);
  const Tensor input_gradient = stage->backward(grad, true);
  const Tensor kept_gradient = input_gradient.clone();
  Tensor other = input.clone();
  for (float& value : other.values()) value = -value;
  stage->forward_train(other);
  stage->backward(grad, true);
  stage->forward(other);
  EXPECT_TRUE(std::equal(output.data(), output.data() + output.count(), kept.data()));
  EXPECT_TRUE(std::equal(input_gradient.data(), input_gradient.data() + input_gradient.count(),
                         kept_gradient.data()));
  for (const float value : grad.values()) EXPECT_EQ(value, 1.0f);
}

TEST(StageMemory, LongEvaluationsRunInPieces) {
  // 6 × 28 × 28 floats a sample: 200 samples are several pieces, the last one short.
  const ModelSpec model = make_lenet5(28);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, 12, initial_parameters(model, 0, 12, 3));
  const Tensor input = random_input(model, 200);
  const Tensor all = stage->forward(input);
  EXPECT_EQ(all.shape(), (std::vector<std::int64_t>{200, 10}));
  const Tensor one = stage->forward(input.view(199 * 784, {1, 1, 28, 28}));
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(all.data()[1990 + i], one.data()[i], 1e-5f);
  }
}

TEST(StageMemory, ManyBatchSizes) {
  const ModelSpec model = make_mlp({12, 9, 5}, LayerKind::relu);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, 3, initial_parameters(model, 0, 3, 3));
  const Tensor whole = stage->forward(random_input(model, 20));
  for (std::int64_t n = 0; n <= 20; ++n) {
    const Tensor part = stage->forward_train(random_input(model, n));
    EXPECT_EQ(part.count(), n * 5);
    for (std::int64_t i = 0; i < part.count(); ++i) {
      EXPECT_NEAR(part.data()[i], whole.data()[i], 1e-6f);
    }
    Tensor grad(part.shape());
    std::fill_n(grad.data(), grad.count(), 1.0f);
    EXPECT_EQ(stage->backward(grad, true).count(), n * 12);
    EXPECT_FLOAT_EQ(stage->gradients().back(), static_cast<float>(n));
  }
}

TEST(StageMemory, ParametersAreLive) {
  const ModelSpec model = make_mlp({2, 1}, LayerKind::tanh);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  const auto stage = kernels->make_stage(model, 0, 1, std::vector<float>{1, 2, 3});
  Tensor input({1, 2});
  input.values()[0] = 10;
  input.values()[1] = 100;
  EXPECT_FLOAT_EQ(stage->forward(input).values()[0], 213);
  stage->parameters()[2] = 4;
  EXPECT_FLOAT_EQ(stage->forward(input).values()[0], 214);
}

TEST(StageMisuse, IsRefused) {
  const ModelSpec model = make_mlp({4, 3, 2}, LayerKind::tanh);
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  EXPECT_THROW(kernels->make_stage(model, 0, 3, std::vector<float>(5)), std::logic_error);
  const auto stage = kernels->make_stage(model, 0, 3, initial_parameters(model, 0, 3, 1));
  EXPECT_THROW(stage->forward(Tensor({2, 3})), std::logic_error);
  EXPECT_THROW(stage->forward(Tensor()), std::logic_error);
  EXPECT_THROW(stage->backward(Tensor({2, 2}), true), std::logic_error);
  stage->forward_train(random_input(model, 2));
  EXPECT_THROW(stage->backward(Tensor({3, 2}), true), std::logic_error);
}

TEST(Loss, ByHand) {
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  Tensor logits({2, 2});
  const float values[] = {0, 0, std::log(3.0f), 0};
  std::copy(std::begin(values), std::end(values), logits.data());
  const std::vector<std::uint8_t> labels{1, 0};
  // −ln ½ and −ln ¾.
  const double expected = (std::log(2.0) - std::log(0.75)) / 2;
  EXPECT_NEAR(kernels->loss(logits, labels), expected, 1e-6);
  Tensor gradient;
  EXPECT_NEAR(kernels->loss_gradient(logits, labels, gradient), expected, 1e-6);
  EXPECT_NEAR(gradient.values()[0], 0.25, 1e-6);
  EXPECT_NEAR(gradient.values()[1], -0.25, 1e-6);
  EXPECT_NEAR(gradient.values()[2], -0.125, 1e-6);
  EXPECT_NEAR(gradient.values()[3], 0.125, 1e-6);
  EXPECT_EQ(kernels->correct(logits, labels), 1 + 0);
}

TEST(Loss, GradientMemoryIsReusedUnlessShared) {
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  Tensor logits({1, 2});
  logits.values()[0] = 1;
  logits.values()[1] = 2;
  Tensor gradient;
  kernels->loss_gradient(logits, std::vector<std::uint8_t>{0}, gradient);
  const float* memory = gradient.data();
  kernels->loss_gradient(logits, std::vector<std::uint8_t>{0}, gradient);
  EXPECT_EQ(gradient.data(), memory);
  const Tensor sent = gradient;
  const float value = sent.values()[0];
  kernels->loss_gradient(logits, std::vector<std::uint8_t>{1}, gradient);
  EXPECT_NE(gradient.data(), memory);
  EXPECT_EQ(sent.values()[0], value);
}

TEST(Loss, ExtremesAndMisuse) {
  const std::unique_ptr<Kernels> kernels = make_torch_kernels();
  Tensor logits({1, 3});
  logits.values()[0] = 1e4f;
  logits.values()[1] = -1e4f;
  logits.values()[2] = 0;
  const std::vector<std::uint8_t> second{1};
  EXPECT_NEAR(kernels->loss(logits, second), 2e4, 1);
  Tensor gradient;
  kernels->loss_gradient(logits, second, gradient);
  EXPECT_FLOAT_EQ(gradient.values()[1], -1);
  logits.values()[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(kernels->loss(logits, second)));
  const std::vector<std::uint8_t> none{3};
  EXPECT_THROW(kernels->loss(logits, none), std::logic_error);
  EXPECT_THROW(kernels->loss(logits, std::vector<std::uint8_t>(2)), std::logic_error);
}

TEST(Repeatability, TwoRunsAreEqualToTheLastDigit) {
  for (const ModelSpec& model : {make_mlp({49, 24, 10}, LayerKind::tanh), make_lenet5(28)}) {
    const Outcome a = run_chain(model, {1}, 32);
    const Outcome b = run_chain(model, {1}, 32);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.gradient, b.gradient);
  }
}

std::size_t threads() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// Runs `work` in a forked child; true if it returned true.
bool in_child(bool (*work)()) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool steps_on_one_thread() {
  const std::size_t before = threads();
  const Outcome lenet = run_chain(make_lenet5(28), {3}, 64);
  const Outcome mlp = run_chain(make_mlp({196, 24, 16, 16, 10}, LayerKind::tanh), {2}, 2000);
  return std::isfinite(lenet.loss) && std::isfinite(mlp.loss) && before == 1 && threads() == 1;
}

TEST(Threads, AForkedProcessComputesTheSame) {
  const double here = run_chain(make_lenet5(28), {3}, 64).loss;
  static double expected;
  expected = here;
  EXPECT_TRUE(in_child([] { return run_chain(make_lenet5(28), {3}, 64).loss == expected; }));
}

// Libraries start their threads when they are loaded, so that the variables which forbid it must be
// there before: this program runs itself again with them, as the launcher of agents does.
TEST(Threads, NoneIsStartedBeforeOrAfter) {
  if (std::getenv("ORRERY_TEST_ONE_THREAD") == nullptr) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("ORRERY_TEST_ONE_THREAD", "1", 1);
      ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
      ::setenv("OMP_NUM_THREADS", "1", 1);
      ::execl("/proc/self/exe", "stage_test", "--gtest_filter=Threads.NoneIsStartedBeforeOrAfter",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return;
  }
  EXPECT_EQ(threads(), 1u);
  EXPECT_TRUE(steps_on_one_thread());
  EXPECT_TRUE(in_child([] { return steps_on_one_thread(); }));
  EXPECT_EQ(threads(), 1u);
}

TEST(Calibration, TellsAUsableFigure) {
  const double flops = measure_gemm_flops();
  EXPECT_GT(flops, 1e8);
  EXPECT_LT(flops, 1e13);
  EXPECT_EQ(library_version().substr(0, 9), "libtorch ");
}

}  // namespace
}  // namespace orrery
