// What an agent is told of a run: one JSON document, the same for every agent of it. The controller
// writes it, `spec.json` in the run directory keeps it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agents/device.hh"
#include "agents/strategy.hh"

namespace orrery {

/// Which model; the layers follow from it.
struct ModelChoice {
  std::string kind = "mlp";          ///< "mlp" or "lenet5"
  std::vector<std::int64_t> widths;  ///< of an mlp
  std::string activation = "tanh";   ///< "tanh" or "relu"
};
/// `edge`: height and width of an image, for convolutional models. Throws ValueError.
ModelSpec make_model(const ModelChoice& choice, std::int64_t edge);

struct WorkloadSpec {
  ModelChoice model;
  std::string dataset;
  std::string folder;  ///< of its files
  int pool = 1;
  std::int64_t edge = 0;  ///< of a pooled image
  std::int64_t objective_images = 0;
  std::int64_t train_images = 0;  ///< resolved: never "all"
  std::int64_t test_images = 0;
  WorkloadView view() const;
};

struct NodeSpec {
  std::string name;
  std::string address;
  double speed = 1;       ///< divides kernels' times
  RooflineCost roofline;  ///< used where the run has no profile
  std::vector<SpeedSchedule::Step> schedule;
  std::vector<std::int64_t> socket_buffers;  ///< bytes, by peer's rank
};

struct RunSpec {
  std::string run;
  std::string strategy;
  std::uint64_t seed = 1;
  Options options;
  StopRule stop;
  std::int64_t evaluate_every = 100;
  std::int64_t span_limit = 20000;
  int port = 7000;
  std::vector<NodeSpec> nodes;  ///< by rank
  std::vector<int> stage_layers;
  WorkloadSpec workload;
  std::vector<ProfileCost::Entry> profile;  ///< empty: cost is modelled
  std::string profile_hash;

  ClusterView cluster() const;
};

nlohmann::json to_json(const RunSpec& spec);
/// Throws Error if a field is missing or of another type.
RunSpec run_spec_from_json(const nlohmann::json& json);

}  // namespace orrery
