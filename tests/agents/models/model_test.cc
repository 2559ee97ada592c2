#include "agents/models/model.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "agents/kernel.hh"

namespace orrery {
namespace {

using ::testing::ElementsAre;

TEST(Mlp, LayersShapesAndName) {
  const ModelSpec mlp = make_mlp({196, 24, 16, 10}, LayerKind::tanh);
  EXPECT_EQ(mlp.name, "mlp:196-24-16-10:tanh");
  EXPECT_EQ(mlp.classes, 10);
  ASSERT_EQ(mlp.layer_count(), 5);
  EXPECT_EQ(mlp.layers[0].name, "linear1");
  EXPECT_EQ(mlp.layers[1].name, "tanh1");
  EXPECT_EQ(mlp.layers[4].name, "linear3");
  EXPECT_THAT(mlp.shape_after(-1), ElementsAre(196));
  EXPECT_THAT(mlp.shape_after(1), ElementsAre(24));
  EXPECT_THAT(mlp.shape_after(4), ElementsAre(10));
  EXPECT_THAT(mlp.parametric_layers(), ElementsAre(0, 2, 4));
}

TEST(Mlp, OffsetsAreThoseOfTheWholeModel) {
  const ModelSpec mlp = make_mlp({196, 24, 10}, LayerKind::relu);
  const auto all = mlp.parameters(0, 3);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].offset, 0);
  EXPECT_EQ(all[0].count, 24 * 196);
  EXPECT_EQ(all[1].name, "bias");
  EXPECT_EQ(all[1].offset, 24 * 196);
  EXPECT_EQ(all[2].offset, 24 * 196 + 24);
  EXPECT_THAT(all[2].shape, ElementsAre(10, 24));
  const auto tail = mlp.parameters(1, 3);
  ASSERT_EQ(tail.size(), 2u);
  EXPECT_EQ(tail[0].offset, 24 * 196 + 24);
  EXPECT_EQ(mlp.parameter_count(), 24 * 196 + 24 + 240 + 10);
  EXPECT_EQ(mlp.parameter_count(1, 2), 0);
}

TEST(Mlp, FlopsByHand) {
  const ModelSpec mlp = make_mlp({196, 24, 10}, LayerKind::tanh);
  EXPECT_DOUBLE_EQ(mlp.forward_flops(0, 1), 2 * 196 * 24);
  EXPECT_DOUBLE_EQ(mlp.forward_flops(0, 3), 2 * 196 * 24 + 24 + 2 * 24 * 10);
}

TEST(Lenet5, IsLeCunsOn28By28) {
  const ModelSpec lenet = make_lenet5(28);
  EXPECT_THAT(lenet.input_shape, ElementsAre(1, 28, 28));
  EXPECT_THAT(lenet.shape_after(0), ElementsAre(6, 28, 28));
  EXPECT_THAT(lenet.shape_after(2), ElementsAre(6, 14, 14));
  EXPECT_THAT(lenet.shape_after(3), ElementsAre(16, 10, 10));
  EXPECT_THAT(lenet.shape_after(6), ElementsAre(400));
  EXPECT_THAT(lenet.shape_after(11), ElementsAre(10));
  // 156 + 2416 + 48120 + 10164 + 850
  EXPECT_EQ(lenet.parameter_count(), 61706);
  EXPECT_THAT(lenet.parametric_layers(), ElementsAre(0, 3, 7, 9, 11));
  EXPECT_DOUBLE_EQ(lenet.forward_flops(0, 1), 2.0 * 25 * 6 * 28 * 28);
  EXPECT_DOUBLE_EQ(lenet.forward_flops(2, 3), 6.0 * 28 * 28);
}

TEST(Lenet5, SmallImages) {
  EXPECT_EQ(make_lenet5(14).elements_after(6), 16);
  EXPECT_THROW(make_lenet5(11), std::logic_error);
}

TEST(Model, MisfittingLayersAreNamed) {
  ModelSpec model = make_mlp({8, 4, 2}, LayerKind::tanh);
  model.layers[2].in = 5;
  try {
    model.shape_after(2);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "layer linear2 is given a sample of shape 4; it takes 5");
  }
  EXPECT_THROW(model.parameters(0, 4), std::logic_error);
}

TEST(InitialParameters, DoNotDependOnTheCut) {
  for (const ModelSpec& model : {make_mlp({20, 12, 8, 5}, LayerKind::relu), make_lenet5(14)}) {
    const std::vector<float> whole = initial_parameters(model, 0, model.layer_count(), 7);
    ASSERT_EQ(static_cast<std::int64_t>(whole.size()), model.parameter_count());
    for (int cut = 0; cut <= model.layer_count(); ++cut) {
      std::vector<float> parts = initial_parameters(model, 0, cut, 7);
      const std::vector<float> rest = initial_parameters(model, cut, model.layer_count(), 7);
      parts.insert(parts.end(), rest.begin(), rest.end());
      EXPECT_EQ(parts, whole) << "cut at " << cut;
    }
  }
}

TEST(InitialParameters, BoundVarianceAndBias) {
  const ModelSpec tanh_net = make_mlp({400, 100, 10}, LayerKind::tanh);
  const std::vector<float> values = initial_parameters(tanh_net, 0, 1, 3);
  const float bound = std::sqrt(3.0f / 400.0f);
  double squares = 0;
  for (std::size_t i = 0; i < 40000; ++i) {
    EXPECT_LE(std::abs(values[i]), bound);
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  EXPECT_NEAR(squares / 40000, 1.0 / 400, 1.0 / 400 * 0.03);
  EXPECT_TRUE(std::all_of(values.begin() + 40000, values.end(), [](float b) { return b == 0; }));

  const std::vector<float> relu =
      initial_parameters(make_mlp({400, 100, 10}, LayerKind::relu), 0, 1, 3);
  EXPECT_NEAR(relu[5] / values[5], std::sqrt(2.0f), 1e-5);
  EXPECT_NE(initial_parameters(tanh_net, 0, 1, 4), values);
}

TEST(Kernel, KeysAreUnique) {
  const ModelSpec mlp = make_mlp({196, 24, 10}, LayerKind::tanh);
  EXPECT_EQ(forward_kernel(mlp, 0, 2, 2000).key(), "forward[0,2)x2000");
  EXPECT_EQ(reduce_kernel(1234).key(), "reduce x1234");
  const std::vector<KernelSpec> kernels{forward_kernel(mlp, 0, 2, 64),
                                        forward_train_kernel(mlp, 0, 2, 64),
                                        backward_kernel(mlp, 0, 2, 64),
                                        forward_kernel(mlp, 0, 3, 64),
                                        loss_kernel(64, 10),
                                        loss_kernel(64, 11),
                                        loss_gradient_kernel(64, 10),
                                        load_batch_kernel(64, 196),
                                        load_batch_kernel(64, 784),
                                        update_kernel(100, false),
                                        update_kernel(100, true),
                                        reduce_kernel(100),
                                        copy_kernel(100),
                                        fill_kernel(100),
                                        message_kernel(100),
                                        estimator_fit_kernel(30, 150),
                                        candidates_kernel(250, 150)};
  std::vector<std::string> keys;
  for (const KernelSpec& kernel : kernels) keys.push_back(kernel.key());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(Kernel, FlopsAndBytesByHand) {
  const ModelSpec mlp = make_mlp({196, 24, 10}, LayerKind::tanh);
  const KernelSpec forward = forward_kernel(mlp, 0, 2, 64);
  EXPECT_DOUBLE_EQ(forward.flops, 64.0 * (2 * 196 * 24 + 24));
  EXPECT_DOUBLE_EQ(forward.bytes, 4.0 * (64 * (196 + 24 + 24 + 24) + 196 * 24 + 24));
  // The first layer of a model has no input gradient to compute; a later one has.
  EXPECT_DOUBLE_EQ(backward_kernel(mlp, 0, 2, 1).flops, 2 * 196 * 24 + 2 * 24);
  EXPECT_DOUBLE_EQ(backward_kernel(mlp, 2, 3, 1).flops, 2 * 2 * 24 * 10);
  EXPECT_DOUBLE_EQ(update_kernel(10, false).bytes, 120);
  EXPECT_DOUBLE_EQ(update_kernel(10, true).flops, 40);
  EXPECT_DOUBLE_EQ(message_kernel(1000).bytes, 2000);
  EXPECT_DOUBLE_EQ(message_kernel(1000).flops, 0);
  EXPECT_DOUBLE_EQ(load_batch_kernel(10, 196).bytes, 5 * 1960);
}

}  // namespace
}  // namespace orrery
