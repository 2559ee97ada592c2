#include "tests/exact/guest_cluster.hh"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "agents/transport_grpc.hh"
#include "base/error.hh"
#include "netshape/kernel_backend.hh"
#include "netshape/plan.hh"
#include "tests/support/reference_kernels.hh"

namespace orrery::test {
namespace {

// From the forks to listening, and from there to time zero: more than connecting takes on any link
// of these tests.
constexpr Duration until_connect = Duration::milliseconds(1000);
constexpr Duration until_start = Duration::milliseconds(2000);

void live(const GuestCluster& cluster, const netshape::Plan& plan, std::size_t rank, Instant begun,
          const NodeBody& body) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  const std::string& own = cluster.nodes[rank].name;
  TransportOptions options;
  options.rank = static_cast<int>(rank);
  ClusterView view;
  for (const netshape::StarNode& node : cluster.nodes) {
    view.nodes.push_back({node.name, 1});
    options.addresses.push_back(plan.vertex(node.name).address);
    options.socket_buffers.push_back(
        node.name == own ? 0 : plan.path(own, node.name).socket_buffer.value);
  }
  MonotonicClock clock((begun + until_start).ns);
  GrpcTransport transport(options, clock);
  transport.listen();
  clock.sleep_until({(until_connect - until_start).ns});
  transport.connect(cluster.placement.nodes.at(rank).sends_to);

  Device device(
      clock,
      rank < cluster.costs.size() ? cluster.costs[rank] : std::make_shared<const FixedCost>(), 1,
      rank < cluster.schedules.size() ? cluster.schedules[rank] : SpeedSchedule());
  VectorSink records;
  const auto kernels = make_reference_kernels();
  static const Dataset no_data;
  NodeParts parts{clock,
                  device,
                  transport,
                  *kernels,
                  cluster.data ? *cluster.data : no_data,
                  records,
                  view,
                  cluster.workload,
                  cluster.placement,
                  cluster.options,
                  cluster.stop};
  parts.evaluate_every = 0;
  ActivityPage activity(options.rank, 0);
  parts.activity = &activity;
  Node node(parts);
  clock.sleep_until(Instant{});
  body(node, records);
  node.settle();
  transport.close();
}

}  // namespace

void print_line(const std::string& line) {
  // One write: lines of several processes do not mix.
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(1);
}

bool run_in_guest(const GuestCluster& cluster, const NodeBody& body) {
  const netshape::Plan plan = netshape::plan(netshape::star(cluster.nodes), 1);
  MonotonicClock clock;
  netshape::KernelBackend network([&] { return clock.now(); });
  network.apply(plan);
  const Instant begun = clock.now();
  std::vector<pid_t> children;
  for (std::size_t rank = 0; rank < cluster.nodes.size(); ++rank) {
    const pid_t child = ::fork();
    if (child < 0) throw_errno("fork a node");
    if (child == 0) {
      try {
        check_system(::setns(network.node_namespace(cluster.nodes[rank].name), CLONE_NEWNET),
                     "enter a node's network");
        live(cluster, plan, rank, begun, body);
      } catch (const std::exception& error) {
        print_line(cluster.nodes[rank].name + ": " + error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  bool ok = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ok &= status == 0;
  }
  return ok;
}

}  // namespace orrery::test
