// Runs in the time-travel kernel: a star of n nodes, each a process in its own namespace with the
// real transport, that measure ring all-reduces. Prints one line a case:
//
//   ring n=4 bytes=65536 delay_ns=100000 rate=200000000 round_ns=… round_ns=…
//
// Every round is timed on each node from a common instant to the end of its own all-reduce; the
// line gives the slowest node's time of each measured round.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "agents/collectives/ring.hh"
#include "agents/transport_grpc.hh"
#include "netshape/kernel_backend.hh"
#include "netshape/plan.hh"

namespace {

using namespace orrery;

constexpr int warm_up_rounds = 3;
constexpr int measured_rounds = 2;
constexpr int rounds = warm_up_rounds + measured_rounds;

struct Case {
  int n;
  std::int64_t bytes;
  Duration delay;  // of the whole path, one way
  BitRate rate;
};

// Shared between the node processes.
struct Board {
  std::int64_t ready[16];
  std::int64_t took[16][rounds];
};

struct NullSink : RecordSink {
  void write(const wire::Record&) override {}
};

// Kernels are free here: only messages take time.
struct NoKernels : Kernels {
  std::unique_ptr<Stage> make_stage(const ModelSpec&, int, int, std::span<const float>) override {
    return nullptr;
  }
  double loss(const Tensor&, std::span<const std::uint8_t>) override { return 0; }
  double loss_gradient(const Tensor&, std::span<const std::uint8_t>, Tensor&) override { return 0; }
  std::int64_t correct(const Tensor&, std::span<const std::uint8_t>) override { return 0; }
};

std::int64_t now_ns() {
  MonotonicClock clock;
  return clock.now().ns;
}

void run_node(const Case& c, const netshape::Plan& plan, int rank, Board& board) {
  TransportOptions options;
  options.rank = rank;
  for (int i = 0; i < c.n; ++i) {
    const std::string name = "node" + std::to_string(i);
    options.addresses.push_back(plan.vertex(name).address);
    options.socket_buffers.push_back(
        i == rank ? 0 : plan.path("node" + std::to_string(rank), name).socket_buffer.value);
  }
  MonotonicClock clock;
  GrpcTransport transport(options, clock);
  transport.listen();
  // All listen before anybody connects; a second is more than enough for that.
  clock.sleep_until(Instant{board.ready[0]} + Duration::seconds(1));
  transport.connect({(rank + 1) % c.n});

  Device device(clock, std::make_shared<RooflineCost>(), 1);
  NullSink records;
  NoKernels kernels;
  const Dataset data;
  ClusterView cluster;
  for (int i = 0; i < c.n; ++i) cluster.nodes.push_back({"node" + std::to_string(i), 1});
  const WorkloadView workload;
  const Placement placement{std::vector<NodePlacement>(static_cast<std::size_t>(c.n)), ""};
  const Options none;
  const StopRule stop;
  Node node({clock, device, transport, kernels, data, records, cluster, workload, placement, none,
             stop, 1, 0, 0});

  Instant start = Instant{board.ready[0]} + Duration::seconds(2);
  for (int round = 0; round < rounds; ++round) {
    Tensor values({c.bytes / 4});
    std::fill(values.values().begin(), values.values().end(), static_cast<float>(rank + 1));
    clock.sleep_until(start);
    ring_all_reduce(node, values, MessageKind::gradient, 1);
    board.took[rank][round] = (clock.now() - start).ns;
    const float expected = static_cast<float>(c.n * (c.n + 1) / 2);
    for (const float v : values.values())
      if (v != expected) {
        std::printf("wrong sum %g, expected %g\n", static_cast<double>(v),
                    static_cast<double>(expected));
        std::fflush(stdout);
        ::_exit(1);
      }
    // Rounds follow each other closely, so that no congestion window ages.
    start = start +
            Duration::seconds(2.5 * 2 * (c.n - 1) *
                              (c.delay.in_seconds() +
                               static_cast<double>(c.bytes) / c.n / c.rate.bytes_per_second())) +
            Duration::milliseconds(50);
  }
  transport.close();
}

void set_in_namespace(int network, const char* path, const char* value) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setns(network, CLONE_NEWNET) != 0) ::_exit(1);
    std::ofstream(path) << value;
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

bool run_case(const Case& c) {
  netshape::LinkSpec link;
  link.delay = Duration{c.delay.ns / 2};
  link.rate = c.rate;
  link.queue = Bytes::mib(64);
  std::vector<netshape::StarNode> nodes;
  for (int i = 0; i < c.n; ++i) nodes.push_back({"node" + std::to_string(i), link, link});
  const netshape::Plan plan = netshape::plan(netshape::star(nodes), 1);
  netshape::KernelBackend network([] { return Instant{now_ns()}; });
  network.apply(plan);

  auto* board = static_cast<Board*>(
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  board->ready[0] = now_ns();
  std::vector<pid_t> children;
  for (int rank = 0; rank < c.n; ++rank) {
    const int ns = network.node_namespace("node" + std::to_string(rank));
    set_in_namespace(ns, "/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0");
    // Cubic leaves slow start as soon as its own burst makes the round trip longer (HyStart), and
    // then sends a part of a chunk only when acknowledgements come. The closed form is that of open
    // windows.
    set_in_namespace(ns, "/proc/sys/net/ipv4/tcp_congestion_control", "reno");
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setns(ns, CLONE_NEWNET) != 0) ::_exit(1);
      try {
        run_node(c, plan, rank, *board);
      } catch (const std::exception& error) {
        std::printf("node %d: %s\n", rank, error.what());
        std::fflush(stdout);
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
  std::printf("ring n=%d bytes=%lld delay_ns=%lld rate=%lld", c.n, static_cast<long long>(c.bytes),
              static_cast<long long>(c.delay.ns), static_cast<long long>(c.rate.bits_per_second));
  for (int round = warm_up_rounds; round < rounds; ++round) {
    std::int64_t slowest = 0;
    for (int rank = 0; rank < c.n; ++rank) slowest = std::max(slowest, board->took[rank][round]);
    std::printf(" round_ns=%lld", static_cast<long long>(slowest));
  }
  std::printf(" %s\n", ok ? "ok" : "failed");
  std::fflush(stdout);
  ::munmap(board, sizeof(Board));
  return ok;
}

}  // namespace

// ring_guest DELAY_US [N…]: all sizes for these numbers of nodes
int main(int argc, char** argv) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  const Duration delay = Duration::microseconds(argc > 1 ? std::atoi(argv[1]) : 100);
  bool ok = true;
  std::vector<int> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {2, 4, 8};
  try {
    for (const int n : sizes)
      for (const std::int64_t bytes :
           {std::int64_t{64} << 10, std::int64_t{1} << 20, std::int64_t{16} << 20})
        ok &= run_case({n, bytes, delay, BitRate::mbit(200)});
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
  return ok ? 0 : 1;
}
