#include "agents/torch/profiler.hh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "agents/data/dataset.hh"
#include "agents/kernels.hh"
#include "agents/strategies/sgd.hh"
#include "agents/torch/calibrate.hh"
#include "base/error.hh"
#include "base/philox.hh"

namespace orrery {
namespace {

/// A sample shorter than this would measure the clock.
constexpr long long shortest_sample_ns = 50'000;
constexpr int most_samples = 201;
constexpr int fewest_samples = 5;

/// What a message costs beside copying its bytes: system calls, framing and the dispatch of two
/// ends' worth of a gRPC stream, which no loop in one process shows. See docs/device-model.md.
constexpr long long message_overhead_ns = 20'000;
constexpr std::int64_t message_sizes[] = {16, 4 << 10, 64 << 10, 1 << 20, 16 << 20};

/// One kernel to measure. `prepare` is not timed.
struct Task {
  KernelSpec kernel;
  std::function<void()> prepare;
  std::function<void()> work;
  long long constant_ns = 0;
  int repeats = 1;
  std::vector<double> samples_ns;
};

void fill_random(std::span<float> values, std::string_view name) {
  Philox draws(1, name);
  for (float& value : values) value = static_cast<float>(draws.uniform(-1, 1));
}

Tensor random_tensor(std::int64_t n, const std::vector<std::int64_t>& sample) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), sample.begin(), sample.end());
  Tensor tensor(std::move(shape));
  fill_random(tensor.values(), "profile data");
  return tensor;
}

std::shared_ptr<std::vector<float>> random_vector(std::int64_t count, std::string_view name) {
  auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
  fill_random(*values, name);
  return values;
}

class TaskMaker {
 public:
  explicit TaskMaker(const ModelSpec& model) : model_(model), kernels_(make_torch_kernels()) {}

  Task make(const KernelSpec& kernel) {
    Task task;
    task.kernel = kernel;
    if (const ProfiledKernel& known = profiled_kernel(kernel.op)) {
      task.work = known(kernel);
      return task;
    }
    switch (kernel.op) {
      case KernelOp::forward:
      case KernelOp::forward_train:
      case KernelOp::backward:
        make_layers(task);
        break;
      case KernelOp::loss:
      case KernelOp::loss_gradient:
        make_loss(task);
        break;
      case KernelOp::load_batch:
        make_load(task);
        break;
      case KernelOp::update:
        make_update(task);
        break;
      case KernelOp::reduce:
        task.work = [x = random_vector(kernel.count, "x"), y = random_vector(kernel.count, "y")] {
          std::transform(x->begin(), x->end(), y->begin(), y->begin(), std::plus<>());
        };
        break;
      case KernelOp::copy:
        task.work = [x = random_vector(kernel.count, "x"), y = random_vector(kernel.count, "y")] {
          std::copy(x->begin(), x->end(), y->begin());
        };
        break;
      case KernelOp::fill:
        task.work = [centre = random_vector(kernel.count, "x"),
                     y = random_vector(kernel.count, "y"), sequence = std::uint64_t{0}]() mutable {
          Philox draws(1, "fill", sequence++);
          std::transform(centre->begin(), centre->end(), y->begin(), [&](float value) {
            return value + 0.01f * static_cast<float>(draws.uniform(-1, 1));
          });
        };
        break;
      case KernelOp::message:
        task.constant_ns = message_overhead_ns;
        task.work = [from = std::vector<char>(static_cast<std::size_t>(kernel.count), 'x'),
                     to = std::vector<char>(static_cast<std::size_t>(kernel.count))]() mutable {
          std::memcpy(to.data(), from.data(), from.size());
          from.back() = to.front();  // what nobody reads might not be copied
        };
        break;
      case KernelOp::estimator_fit:
      case KernelOp::candidates:
        throw Error("no code is registered with which to measure \"" +
                    std::string(to_string(kernel.op)) + "\"");
    }
    return task;
  }

 private:
  void make_layers(Task& task) {
    const KernelSpec& kernel = task.kernel;
    // One stage serves all kernels of its layers, as it does on a node.
    std::shared_ptr<Stage>& stage = stages_[{kernel.first, kernel.last}];
    if (!stage) {
      stage = kernels_->make_stage(model_, kernel.first, kernel.last,
                                   initial_parameters(model_, kernel.first, kernel.last, 1));
    }
    const Tensor input = random_tensor(kernel.count, model_.shape_after(kernel.first - 1));
    if (kernel.op == KernelOp::forward) {
      task.work = [stage, input] { stage->forward(input); };
    } else if (kernel.op == KernelOp::forward_train) {
      task.work = [stage, input] { stage->forward_train(input); };
    } else {
      const Tensor gradient = random_tensor(kernel.count, model_.shape_after(kernel.last - 1));
      const bool want = kernel.first > 0;
      task.prepare = [stage, input] { stage->forward_train(input); };
      task.work = [stage, gradient, want] { stage->backward(gradient, want); };
    }
  }

  void make_loss(Task& task) {
    const KernelSpec& kernel = task.kernel;
    const Tensor logits = random_tensor(kernel.count, {kernel.extra});
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(kernel.count));
    Philox draws(1, "labels");
    for (std::uint8_t& label : labels) {
      label = static_cast<std::uint8_t>(draws.below(static_cast<std::uint32_t>(kernel.extra)));
    }
    const std::shared_ptr<Kernels> kernels = kernels_;
    if (kernel.op == KernelOp::loss) {
      task.work = [kernels, logits, labels] { kernels->loss(logits, labels); };
    } else {
      task.work = [kernels, logits, labels, gradient = Tensor()]() mutable {
        kernels->loss_gradient(logits, labels, gradient);
      };
    }
  }

  static void make_load(Task& task) {
    const std::int64_t count = task.kernel.count;
    const std::int64_t pixels = task.kernel.extra;
    auto data = std::make_shared<Dataset>();
    data->mean = 0.3f;
    data->deviation = 0.3f;
    data->train.height = 1;
    data->train.width = pixels;
    data->train.classes = 1;
    data->train.labels.resize(static_cast<std::size_t>(count));
    data->train.pixels.resize(static_cast<std::size_t>(count * pixels));
    Philox draws(1, "pixels");
    for (std::uint8_t& pixel : data->train.pixels) {
      pixel = static_cast<std::uint8_t>(draws.below(256));
    }
    // Images in random order, as training reads them.
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    for (std::int64_t& index : order) {
      index = draws.below(static_cast<std::uint32_t>(count));
    }
    task.work = [data, order, pixels] { make_batch(*data, data->train, order, {pixels}); };
  }

  static void make_update(Task& task) {
    const std::int64_t count = task.kernel.count;
    const double momentum = task.kernel.extra != 0 ? 0.9 : 0.0;
    task.work = [optimizer = SgdOptimizer(1e-6, momentum, count),
                 parameters = random_vector(count, "x"),
                 gradients = random_vector(count, "y")]() mutable {
      optimizer.step(*parameters, *gradients, 1, 1);
    };
  }

  const ModelSpec& model_;
  std::shared_ptr<Kernels> kernels_;
  std::map<std::pair<int, int>, std::shared_ptr<Stage>> stages_;
};

/// What two readings of the clock take between them: the least of many.
long long clock_overhead_ns() {
  long long least = std::numeric_limits<long long>::max();
  for (int i = 0; i < 200; ++i) {
    const long long begin = thread_cpu_ns();
    least = std::min(least, thread_cpu_ns() - begin);
  }
  return least;
}

/// Time of one execution, averaged over the task's repeats.
double sample_ns(Task& task, long long overhead) {
  long long total = 0;
  if (task.prepare) {
    for (int i = 0; i < task.repeats; ++i) {
      task.prepare();
      const long long begin = thread_cpu_ns();
      task.work();
      total += std::max(0ll, thread_cpu_ns() - begin - overhead);
    }
  } else {
    const long long begin = thread_cpu_ns();
    for (int i = 0; i < task.repeats; ++i) task.work();
    total = std::max(0ll, thread_cpu_ns() - begin - overhead);
  }
  return static_cast<double>(total) / task.repeats + static_cast<double>(task.constant_ns);
}

ProfileCost::Entry summarise(Task& task) {
  std::vector<double>& samples = task.samples_ns;
  std::sort(samples.begin(), samples.end());
  // Nearest rank: the p-th of n values is the ⌈p n⌉-th smallest.
  const auto quantile = [&](double p) {
    const double rank = std::ceil(p * static_cast<double>(samples.size()));
    return Duration{std::llround(samples[static_cast<std::size_t>(std::max(1.0, rank)) - 1])};
  };
  return {task.kernel, quantile(0.5), quantile(0.95)};
}

}  // namespace

Profile measure(const ModelSpec& model, std::span<const KernelSpec> kernels, Duration budget) {
  std::map<std::string, KernelSpec> wanted;
  for (const KernelSpec& kernel : kernels) wanted.emplace(kernel.key(), kernel);
  for (const std::int64_t size : message_sizes) {
    const KernelSpec kernel = message_kernel(size);
    wanted.emplace(kernel.key(), kernel);
  }

  TaskMaker maker(model);
  std::vector<Task> tasks;
  tasks.reserve(wanted.size());
  for (const auto& [key, kernel] : wanted) tasks.push_back(maker.make(kernel));

  const long long begin = thread_cpu_ns();
  const long long overhead = clock_overhead_ns();
  for (Task& task : tasks) {
    // The first run faults pages in, the second fills caches, the third tells how long one takes.
    sample_ns(task, overhead);
    sample_ns(task, overhead);
    const double once =
        std::max(10.0, sample_ns(task, overhead) - static_cast<double>(task.constant_ns));
    task.repeats = static_cast<int>(std::ceil(static_cast<double>(shortest_sample_ns) / once));
    if (once > static_cast<double>(shortest_sample_ns)) task.repeats = 1;
  }
  // All kernels in turn, so that a slow moment of the host falls on all of them alike.
  for (int round = 0; round < most_samples; ++round) {
    if (round >= fewest_samples && thread_cpu_ns() - begin > budget.ns) break;
    for (Task& task : tasks) task.samples_ns.push_back(sample_ns(task, overhead));
  }

  Profile profile;
  profile.model = model.name;
  profile.library = library_version();
  profile.cpu = cpu_name();
  for (Task& task : tasks) profile.entries.push_back(summarise(task));
  return profile;
}

}  // namespace orrery
