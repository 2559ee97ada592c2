#include "agents/torch/profiler.hh"

#include <gtest/gtest.h>

#include <algorithm>

#include "agents/strategy.hh"
#include "base/error.hh"

namespace orrery {
namespace {

const ProfileCost::Entry* find(const Profile& profile, const KernelSpec& kernel) {
  const auto found = std::find_if(profile.entries.begin(), profile.entries.end(),
                                  [&](const auto& entry) { return entry.kernel == kernel; });
  return found == profile.entries.end() ? nullptr : &*found;
}

TEST(Profiler, MeasuresEveryOperation) {
  const ModelSpec mlp = make_mlp({196, 24, 10}, LayerKind::tanh);
  register_profiled(KernelOp::estimator_fit, [](const KernelSpec& kernel) {
    return [values = std::vector<double>(static_cast<std::size_t>(kernel.extra))]() mutable {
      for (double& value : values) value += 1;
    };
  });
  const std::vector<KernelSpec> kernels{forward_kernel(mlp, 0, 3, 64),
                                        forward_kernel(mlp, 0, 3, 2000),
                                        forward_train_kernel(mlp, 0, 2, 64),
                                        backward_kernel(mlp, 0, 2, 64),
                                        backward_kernel(mlp, 2, 3, 64),
                                        loss_kernel(64, 10),
                                        loss_gradient_kernel(64, 10),
                                        load_batch_kernel(64, 196),
                                        update_kernel(5000, false),
                                        update_kernel(5000, true),
                                        reduce_kernel(5000),
                                        copy_kernel(5000),
                                        fill_kernel(5000),
                                        message_kernel(5000),
                                        estimator_fit_kernel(30, 150),
                                        copy_kernel(5000)};
  const Profile profile = measure(mlp, kernels, Duration::milliseconds(200));
  EXPECT_EQ(profile.model, mlp.name);
  EXPECT_FALSE(profile.library.empty());
  EXPECT_FALSE(profile.cpu.empty());
  for (const KernelSpec& kernel : kernels) {
    const ProfileCost::Entry* entry = find(profile, kernel);
    ASSERT_NE(entry, nullptr) << kernel.key();
    EXPECT_GT(entry->median.ns, 0) << kernel.key();
    EXPECT_LT(entry->median, Duration::milliseconds(100)) << kernel.key();
    EXPECT_GE(entry->p95, entry->median) << kernel.key();
  }
  EXPECT_GT(find(profile, kernels[1])->median, find(profile, kernels[0])->median);
  // A message costs its fixed part and, large, its bytes.
  EXPECT_GE(find(profile, message_kernel(16))->median, Duration::microseconds(20));
  EXPECT_GT(find(profile, message_kernel(16 << 20))->median,
            find(profile, message_kernel(16))->median);
  // Any message size is interpolated rather than an error.
  EXPECT_GE(profile.cost()->base(message_kernel(123'456)), Duration::microseconds(20));
}

TEST(Profiler, MeasuresEveryKernelOfNdCao) {
  const StrategyInfo& info = *find_strategy("nd_cao");
  info.register_kernels();
  ClusterView cluster;
  cluster.nodes = {{"a", 1}, {"b", 1}};
  WorkloadView workload;
  workload.model = make_mlp({196, 16, 10}, LayerKind::tanh);
  workload.train_images = workload.objective_images = 200;
  StopRule stop;
  stop.evaluations = 10;
  Options options(info.options);
  options.set("top", OptionValue(std::int64_t{20}));
  const Placement placement = info.make()->plan(cluster, workload, options, stop, 1);
  std::vector<KernelSpec> kernels;
  for (const NodePlacement& node : placement.nodes)
    kernels.insert(kernels.end(), node.kernels.begin(), node.kernels.end());
  const Profile profile = measure(workload.model, kernels, Duration::milliseconds(300));
  const auto cost = profile.cost();
  for (const KernelSpec& kernel : kernels) EXPECT_GT(cost->base(kernel).ns, 0) << kernel.key();
  EXPECT_EQ(cost->interpolated(), 0);
  // Not a stand-in: a larger window takes longer, and 270 candidates of 150 monomials some time.
  EXPECT_GT(cost->base(estimator_fit_kernel(30, 150)), cost->base(estimator_fit_kernel(5, 150)));
  EXPECT_GT(cost->base(candidates_kernel(270, 150)), Duration::microseconds(50));
}

TEST(Profiler, UnknownCodeIsAnError) {
  const ModelSpec mlp = make_mlp({4, 2}, LayerKind::tanh);
  const std::vector<KernelSpec> kernels{candidates_kernel(250, 150)};
  register_profiled(KernelOp::candidates, nullptr);
  try {
    measure(mlp, kernels, Duration::milliseconds(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no code is registered with which to measure \"candidates\"");
  }
}

}  // namespace
}  // namespace orrery
