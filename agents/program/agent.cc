#include "agents/program/agent.hh"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "agents/activity.hh"
#include "agents/core_leases.hh"
#include "agents/node.hh"
#include "agents/program/control_client.hh"
#include "agents/transport_grpc.hh"

namespace orrery {
namespace {

std::shared_ptr<const CostModel> cost_of(const RunSpec& spec, const NodeSpec& node) {
  if (spec.profile.empty()) return std::make_shared<RooflineCost>(node.roofline);
  return std::make_shared<ProfileCost>(spec.profile);
}

TransportOptions transport_options(const AgentSetup& setup, int rank) {
  const RunSpec& spec = setup.spec;
  TransportOptions options;
  options.rank = rank;
  for (const NodeSpec& node : spec.nodes) options.addresses.push_back(node.address);
  options.port = spec.port;
  // What the time-travel kernel has; a host may have chosen another.
  if (!setup.leases.empty()) options.congestion_control = "cubic";
  options.socket_buffers = spec.nodes[static_cast<std::size_t>(rank)].socket_buffers;
  return options;
}

// Whose time is charged apart is what a profile of this host knows; a roofline knows the device's
// only, and then a message costs both.
std::optional<HostPace> pace_of(const AgentSetup& setup, int rank,
                                const std::shared_ptr<const CostModel>& cost) {
  if (setup.leases.empty()) return {};
  const auto leases = std::make_shared<CoreLeases>(setup.leases, rank);
  return HostPace{[leases](const std::function<void()>& work) { leases->run(work); },
                  setup.spec.profile.empty() ? nullptr : cost};
}

std::unique_ptr<MonotonicClock> make_clock(const AgentSetup& setup) {
  if (setup.leases.empty()) return std::make_unique<MonotonicClock>();
  return std::make_unique<WallClock>();
}

std::string records_path(const std::string& dir, int rank, int incarnation) {
  return dir + "/node-" + std::to_string(rank) +
         (incarnation ? "-" + std::to_string(incarnation) : "") + ".bin";
}

int run(const AgentSetup& setup, int rank, int incarnation) {
  const RunSpec& spec = setup.spec;
  const NodeSpec& self = spec.nodes.at(static_cast<std::size_t>(rank));
  // A timer may fire this much late: by default 50 µs, which would be an error of every delay here.
  ::prctl(PR_SET_TIMERSLACK, 1);
  ::prctl(PR_SET_NAME, self.name.c_str());

  const auto kept = make_clock(setup);
  MonotonicClock& clock = *kept;
  GrpcTransport transport(transport_options(setup, rank), clock);
  std::atomic<Node*> running{nullptr};
  ControlClient control(setup.control_socket, transport.queue(), [&]() -> std::string {
    const Node* node = running.load();
    return node ? node->waiting_for() : "starting";
  });
  std::string failure;
  try {
    const StrategyInfo* info = find_strategy(spec.strategy);
    if (!info) throw Error("'" + spec.strategy + "' is not a strategy of this version");
    const auto strategy = info->make();
    const ClusterView cluster = spec.cluster();
    const WorkloadView workload = spec.workload.view();
    const Placement placement =
        strategy->plan(cluster, workload, spec.options, spec.stop, spec.seed);

    transport.listen();
    control.hello(rank, ::getpid());
    control.await_connect();
    transport.connect(placement.nodes.at(static_cast<std::size_t>(rank)).sends_to);
    control.connected();
    clock.set_epoch(control.await_start());

    const auto cost = cost_of(spec, self);
    Device device(clock, cost, self.speed, SpeedSchedule(self.schedule),
                  pace_of(setup, rank, cost));
    RecordFileWriter records(records_path(setup.records_dir, rank, incarnation));
    ActivityPage activity(rank, incarnation);
    Node node({clock, device, transport, setup.kernels, setup.data, records, cluster, workload,
               placement, spec.options, spec.stop, spec.seed, spec.evaluate_every, spec.span_limit,
               &activity});
    running = &node;
    clock.sleep_until(Instant{});
    try {
      strategy->run(node);
      node.settle();
      transport.close();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    running = nullptr;
    node.close();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  control.done(failure.empty(), failure);
  return failure.empty() ? 0 : 1;
}

}  // namespace

int run_agent(const AgentSetup& setup, int rank, int incarnation) {
  try {
    return run(setup, rank, incarnation);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "node %d: %s\n", rank, error.what());
    return 1;
  }
}

}  // namespace orrery
