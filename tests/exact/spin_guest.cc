// Runs in the time-travel kernel: node 1 begins a kernel that never ends, node 0 waits for its
// word. Emulated time stands still from then on.

#include <atomic>

#include "tests/exact/guest_cluster.hh"

namespace orrery::test {
namespace {

void spin() {
  GuestCluster cluster;
  for (const char* name : {"node0", "node1"}) cluster.nodes.push_back({name, {}, {}});
  cluster.placement.nodes.resize(2);
  cluster.placement.nodes[1].sends_to = {0};
  run_in_guest(cluster, [](Node& node, VectorSink&) {
    if (node.rank() == 1) {
      node.send(0, {MessageKind::control, 7, "first", {}});
      node.compute(copy_kernel(1234), [] {
        for (std::atomic<int> i{0};; ++i) {
        }
      });
    } else {
      node.recv({1, 7});
      node.recv({1, 7});
    }
  });
}

}  // namespace
}  // namespace orrery::test

int main() {
  orrery::test::spin();
  return 0;
}
