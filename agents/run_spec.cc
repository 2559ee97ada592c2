#include "agents/run_spec.hh"

#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using nlohmann::json;

json options_to_json(const Options& options) {
  json object = json::object();
  for (const auto& [name, value] : options.values())
    std::visit([&](const auto& v) { object[name] = v; }, value);
  return object;
}

// A double that happens to be whole must not come back as an integer: the strategy's declaration
// says which it is.
Options options_from_json(const json& object, const StrategyInfo& info) {
  Options options(info.options);
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean())
      options.set(name, value.get<bool>());
    else if (value.is_string())
      options.set(name, value.get<std::string>());
    else if (options.has(name) && std::holds_alternative<double>(options.values().at(name)))
      options.set(name, value.get<double>());
    else
      options.set(name, value.get<std::int64_t>());
  }
  return options;
}

json kernel_to_json(const KernelSpec& k) {
  return {{"op", static_cast<int>(k.op)},
          {"count", k.count},
          {"extra", k.extra},
          {"first", k.first},
          {"last", k.last},
          {"flops", k.flops},
          {"bytes", k.bytes}};
}

KernelSpec kernel_from_json(const json& j) {
  KernelSpec k;
  k.op = static_cast<KernelOp>(j.at("op").get<int>());
  k.count = j.at("count");
  k.extra = j.at("extra");
  k.first = j.at("first");
  k.last = j.at("last");
  k.flops = j.at("flops");
  k.bytes = j.at("bytes");
  return k;
}

json stop_to_json(const StopRule& stop) {
  json object = json::object();
  if (stop.evaluations) object["evaluations"] = *stop.evaluations;
  if (stop.steps) object["steps"] = *stop.steps;
  if (stop.epochs) object["epochs"] = *stop.epochs;
  if (stop.time) object["time_ns"] = stop.time->ns;
  if (stop.loss) object["loss"] = *stop.loss;
  return object;
}

StopRule stop_from_json(const json& object) {
  StopRule stop;
  if (object.contains("evaluations")) stop.evaluations = object["evaluations"].get<std::int64_t>();
  if (object.contains("steps")) stop.steps = object["steps"].get<std::int64_t>();
  if (object.contains("epochs")) stop.epochs = object["epochs"].get<double>();
  if (object.contains("time_ns")) stop.time = Duration{object["time_ns"].get<std::int64_t>()};
  if (object.contains("loss")) stop.loss = object["loss"].get<double>();
  return stop;
}

json node_to_json(const NodeSpec& node) {
  json schedule = json::array();
  for (const SpeedSchedule::Step& step : node.schedule)
    schedule.push_back({{"from_ns", step.from.ns}, {"factor", step.factor}});
  return {{"name", node.name},
          {"address", node.address},
          {"speed", node.speed},
          {"roofline",
           {{"flops_per_second", node.roofline.flops_per_second},
            {"bytes_per_second", node.roofline.bytes_per_second},
            {"kernel_overhead_ns", node.roofline.kernel_overhead.ns},
            {"message_overhead_ns", node.roofline.message_overhead.ns}}},
          {"schedule", schedule},
          {"socket_buffers", node.socket_buffers}};
}

NodeSpec node_from_json(const json& j) {
  NodeSpec node;
  node.name = j.at("name");
  node.address = j.at("address");
  node.speed = j.at("speed");
  const json& roofline = j.at("roofline");
  node.roofline.flops_per_second = roofline.at("flops_per_second");
  node.roofline.bytes_per_second = roofline.at("bytes_per_second");
  node.roofline.kernel_overhead.ns = roofline.at("kernel_overhead_ns");
  node.roofline.message_overhead.ns = roofline.at("message_overhead_ns");
  for (const json& step : j.at("schedule"))
    node.schedule.push_back(
        {Instant{step.at("from_ns").get<std::int64_t>()}, step.at("factor").get<double>()});
  node.socket_buffers = j.at("socket_buffers").get<std::vector<std::int64_t>>();
  return node;
}

json workload_to_json(const WorkloadSpec& w) {
  return {
      {"model",
       {{"kind", w.model.kind}, {"widths", w.model.widths}, {"activation", w.model.activation}}},
      {"dataset", w.dataset},
      {"folder", w.folder},
      {"pool", w.pool},
      {"edge", w.edge},
      {"objective_images", w.objective_images},
      {"train_images", w.train_images},
      {"test_images", w.test_images}};
}

WorkloadSpec workload_from_json(const json& j) {
  WorkloadSpec w;
  const json& model = j.at("model");
  w.model.kind = model.at("kind");
  w.model.widths = model.at("widths").get<std::vector<std::int64_t>>();
  w.model.activation = model.at("activation");
  w.dataset = j.at("dataset");
  w.folder = j.at("folder");
  w.pool = j.at("pool");
  w.edge = j.at("edge");
  w.objective_images = j.at("objective_images");
  w.train_images = j.at("train_images");
  w.test_images = j.at("test_images");
  return w;
}

}  // namespace

ModelSpec make_model(const ModelChoice& choice, std::int64_t edge) {
  if (choice.kind == "mlp")
    return make_mlp(choice.widths, choice.activation == "relu" ? LayerKind::relu : LayerKind::tanh);
  if (choice.kind == "lenet5") return make_lenet5(edge);
  throw ValueError("'" + choice.kind + "' is not a model; write mlp or lenet5");
}

WorkloadView WorkloadSpec::view() const {
  return {make_model(model, edge), train_images, objective_images};
}

ClusterView RunSpec::cluster() const {
  ClusterView view;
  for (const NodeSpec& node : nodes) {
    // Relative to each other: by what a node computes in a second.
    const double rate = node.roofline.flops_per_second > 0 ? node.roofline.flops_per_second : 1;
    view.nodes.push_back({node.name, node.speed * rate});
  }
  view.stage_layers = stage_layers;
  return view;
}

json to_json(const RunSpec& spec) {
  json nodes = json::array();
  for (const NodeSpec& node : spec.nodes) nodes.push_back(node_to_json(node));
  json profile = json::array();
  for (const ProfileCost::Entry& entry : spec.profile)
    profile.push_back({{"kernel", kernel_to_json(entry.kernel)},
                       {"median_ns", entry.median.ns},
                       {"p95_ns", entry.p95.ns}});
  return {{"run", spec.run},
          {"strategy", spec.strategy},
          {"seed", spec.seed},
          {"options", options_to_json(spec.options)},
          {"stop", stop_to_json(spec.stop)},
          {"evaluate_every", spec.evaluate_every},
          {"span_limit", spec.span_limit},
          {"port", spec.port},
          {"nodes", nodes},
          {"stage_layers", spec.stage_layers},
          {"workload", workload_to_json(spec.workload)},
          {"profile", profile},
          {"profile_hash", spec.profile_hash}};
}

RunSpec run_spec_from_json(const json& j) {
  try {
    RunSpec spec;
    spec.run = j.at("run");
    spec.strategy = j.at("strategy");
    const StrategyInfo* info = find_strategy(spec.strategy);
    if (!info) throw Error("'" + spec.strategy + "' is not a strategy of this version");
    spec.seed = j.at("seed");
    spec.options = options_from_json(j.at("options"), *info);
    spec.stop = stop_from_json(j.at("stop"));
    spec.evaluate_every = j.at("evaluate_every");
    spec.span_limit = j.at("span_limit");
    spec.port = j.at("port");
    for (const json& node : j.at("nodes")) spec.nodes.push_back(node_from_json(node));
    spec.stage_layers = j.at("stage_layers").get<std::vector<int>>();
    spec.workload = workload_from_json(j.at("workload"));
    for (const json& entry : j.at("profile"))
      spec.profile.push_back({kernel_from_json(entry.at("kernel")),
                              Duration{entry.at("median_ns").get<std::int64_t>()},
                              Duration{entry.at("p95_ns").get<std::int64_t>()}});
    spec.profile_hash = j.at("profile_hash");
    return spec;
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string("a run's specification is not what this version writes: ") +
                error.what());
  }
}

}  // namespace orrery
