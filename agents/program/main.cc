// orrery-agent: everything that needs libtorch. Started by `orrery`; of its own it offers
//
//   orrery-agent zygote SPEC --control SOCKET --records DIR --fd N   agents of a run
//   orrery-agent evaluate SPEC --records DIR                         accuracy of a run's snapshots;
//                                                                    prints libtorch's version
//   orrery-agent profile SPEC --folder DIR                           times of a run's kernels, here
//   orrery-agent gemm                                                FLOP/s of a matrix product,
//   here

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "agents/program/agent.hh"
#include "agents/program/evaluate.hh"
#include "agents/program/zygote.hh"
#include "agents/torch/calibrate.hh"
#include "agents/torch/profiler.hh"
#include "base/error.hh"

namespace {

using namespace orrery;

RunSpec read_spec(const std::string& path) {
  return run_spec_from_json(nlohmann::json::parse(read_file(path)));
}

Dataset read_data(const RunSpec& spec) {
  return load_idx_dataset(spec.workload.dataset, spec.workload.folder, spec.workload.pool);
}

// Touches the code that every agent will run, so that its pages are shared and its first step is as
// quick as the others.
void warm_up(const RunSpec& spec, const Dataset& data, Kernels& kernels) {
  const ModelSpec model = spec.workload.view().model;
  const auto start = initial_parameters(model, 0, model.layer_count(), spec.seed);
  const auto stage = kernels.make_stage(model, 0, model.layer_count(), start);
  const std::int64_t n = std::min<std::int64_t>(32, data.train.size());
  const Tensor input = make_batch(data, data.train, 0, n, model.input_shape);
  const auto labels = std::span(data.train.labels).first(static_cast<std::size_t>(n));
  stage->forward(input);
  Tensor slope;
  kernels.loss_gradient(stage->forward_train(input), labels, slope);
  stage->backward(slope, true);
}

int zygote(const std::string& spec_path, const std::string& control, const std::string& records,
           const std::string& leases, int fd) {
  const RunSpec spec = read_spec(spec_path);
  const Dataset data = read_data(spec);
  const auto kernels = make_torch_kernels();
  warm_up(spec, data, *kernels);
  const AgentSetup setup{spec, data, *kernels, control, records, leases};
  return Zygote(FileDescriptor(fd),
                [&](int rank, int incarnation) { return run_agent(setup, rank, incarnation); })
      .serve();
}

int evaluate(const std::string& spec_path, const std::string& records) {
  const RunSpec spec = read_spec(spec_path);
  const Dataset data = read_data(spec);
  const auto kernels = make_torch_kernels();
  evaluate_snapshots(spec, data, *kernels, records);
  std::cout << library_version() << "\n";
  return 0;
}

// Measures the kernels of a run unless `folder` holds them for this model, library and CPU, and
// prints the profile's path.
int profile(const std::string& spec_path, const std::string& folder, double budget, bool again) {
  const RunSpec spec = read_spec(spec_path);
  const WorkloadView workload = spec.workload.view();
  const StrategyInfo* info = find_strategy(spec.strategy);
  if (!info) throw Error("'" + spec.strategy + "' is not a strategy of this version");
  const Placement placement =
      info->make()->plan(spec.cluster(), workload, spec.options, spec.stop, spec.seed);
  if (info->register_kernels) info->register_kernels();
  std::vector<KernelSpec> kernels;
  for (const NodePlacement& node : placement.nodes)
    for (const KernelSpec& kernel : node.kernels)
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
        kernels.push_back(kernel);
  std::filesystem::create_directories(folder);
  const std::string path =
      folder + "/" + profile_file_name(workload.model, kernels, library_version(), cpu_name());
  if (again || !std::filesystem::exists(path))
    write_file(path, to_json(measure(workload.model, kernels, Duration::seconds(budget))));
  std::cout << path << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Orrery's agent: the part that computes. Start `orrery` instead."};
  app.require_subcommand(1);
  std::string spec, control, records, leases, folder;
  bool again = false;
  int fd = -1;
  double budget = 10;
  CLI::App* zygote_command = app.add_subcommand("zygote", "agents of a run");
  zygote_command->add_option("spec", spec)->required();
  zygote_command->add_option("--control", control)->required();
  zygote_command->add_option("--records", records)->required();
  zygote_command->add_option("--fd", fd)->required();
  zygote_command->add_option("--leases", leases,
                             "time is the host's; kernels lease its cores in this folder");
  CLI::App* evaluate_command = app.add_subcommand("evaluate", "accuracy of a run's snapshots");
  evaluate_command->add_option("spec", spec)->required();
  evaluate_command->add_option("--records", records)->required();
  CLI::App* profile_command =
      app.add_subcommand("profile", "times of a run's kernels on this host");
  profile_command->add_option("spec", spec)->required();
  profile_command->add_option("--folder", folder, "where profiles are kept")->required();
  profile_command->add_option("--budget", budget, "seconds of host time");
  profile_command->add_flag("--again", again, "measure even if there is a profile");
  app.add_subcommand("gemm", "FLOP/s of a float32 matrix product on one core of this host");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*zygote_command) return zygote(spec, control, records, leases, fd);
    if (*evaluate_command) return evaluate(spec, records);
    if (*profile_command) return profile(spec, folder, budget, again);
    std::cout << measure_gemm_flops() << "\n";
    return 0;
  } catch (const Error& error) {
    std::cerr << "orrery-agent: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "orrery-agent: " << error.what() << "\n";
    return 1;
  }
}
