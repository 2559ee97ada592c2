// stream_guest COUNT BYTES: in the time-travel kernel, two nodes with the real transport and links
// of 100 Mbit/s; one sends COUNT messages of BYTES, the other receives them all. Prints their
// emulated time; engine_bench takes the host's.

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "agents/transport_grpc.hh"
#include "netshape/kernel_backend.hh"
#include "netshape/plan.hh"

namespace {

using namespace orrery;

void run_node(const netshape::Plan& plan, int rank, std::int64_t count, std::int64_t bytes,
              Instant start) {
  TransportOptions options;
  options.rank = rank;
  for (const char* name : {"node0", "node1"}) options.addresses.push_back(plan.vertex(name).address);
  const std::int64_t buffer = plan.path("node0", "node1").socket_buffer.value;
  options.socket_buffers.assign(2, buffer);
  MonotonicClock clock;
  GrpcTransport transport(options, clock);
  transport.listen();
  clock.sleep_until(start + Duration::seconds(1));
  transport.connect({1 - rank});
  clock.sleep_until(start + Duration::seconds(2));
  const Source source{0, 1};
  for (std::int64_t i = 0; i < count; ++i) {
    if (rank == 0) {
      Message message;
      message.kind = MessageKind::activation;
      message.tag = source.tag;
      message.tensors.emplace_back(std::vector<std::int64_t>{bytes / 4});
      transport.send(1, std::move(message));
    } else {
      transport.wait_any({&source, 1}, std::nullopt);
      transport.try_recv(source);
    }
  }
  if (rank == 1) {
    std::printf("emulated_ns=%lld\n",
                static_cast<long long>((clock.now() - (start + Duration::seconds(2))).ns));
    std::fflush(stdout);
  }
  transport.close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("stream_guest COUNT BYTES\n", stderr);
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1);
  try {
    netshape::LinkSpec link;
    link.delay = Duration::microseconds(500);
    link.rate = BitRate::mbit(100);
    const netshape::Plan plan =
        netshape::plan(netshape::star({{"node0", link, link}, {"node1", link, link}}), 1);
    MonotonicClock clock;
    netshape::KernelBackend network([&] { return clock.now(); });
    network.apply(plan);
    const Instant start = clock.now();
    for (int rank = 0; rank < 2; ++rank)
      if (::fork() == 0) {
        const std::string name = "node" + std::to_string(rank);
        if (::setns(network.node_namespace(name), CLONE_NEWNET) != 0) ::_exit(1);
        run_node(plan, rank, std::atoll(argv[1]), std::atoll(argv[2]), start);
        ::_exit(0);
      }
    int failed = 0;
    for (int rank = 0; rank < 2; ++rank) {
      int status = 0;
      ::wait(&status);
      failed |= status;
    }
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
