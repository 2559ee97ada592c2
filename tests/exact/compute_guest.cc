// Runs in the time-travel kernel: who waits for whom when nodes compute and send. Prints "CASE
// NANOSECONDS" for the case that its argument names: the emulated time from the common start on.
//
// All kernels do real work besides, so that a case would show it if host time leaked into emulated
// time.

#include <string>

#include "tests/exact/guest_cluster.hh"

namespace orrery::test {
namespace {

constexpr Duration ms(std::int64_t v) { return Duration::milliseconds(v); }

/// A kernel of `count` milliseconds; messages take what a case says.
struct CountedCost : CostModel {
  explicit CountedCost(Duration of_a_message) : message(of_a_message) {}
  Duration message;
  Duration base(const KernelSpec& kernel) const override {
    return kernel.op == KernelOp::message ? message : ms(kernel.count);
  }
};

KernelSpec lasting(std::int64_t milliseconds) { return copy_kernel(milliseconds); }

void real_work() {
  volatile double sum = 0;
  for (int i = 0; i < 5'000'000; ++i) sum = sum + i;
}

/// 1 ms from any node to any other, 100 Mbit/s in each direction.
GuestCluster star_of(int n, Duration message = {}) {
  netshape::LinkSpec link;
  link.delay = Duration::microseconds(500);
  link.rate = BitRate::mbit(100);
  link.queue = Bytes::mib(8);
  GuestCluster cluster;
  for (int i = 0; i < n; ++i) {
    cluster.nodes.push_back({"node" + std::to_string(i), link, link});
    cluster.costs.push_back(std::make_shared<CountedCost>(message));
    cluster.placement.nodes.emplace_back();
    for (int peer = 0; peer < n; ++peer)
      if (peer != i) cluster.placement.nodes.back().sends_to.push_back(peer);
  }
  return cluster;
}

Message note() { return {MessageKind::control, 1, "done", {}}; }

void print(const std::string& name, Node& node) {
  print_line(name + " " + std::to_string(node.now().ns));
}

// Every node computes for a while of its own and tells node 0.
void together() {
  run_in_guest(star_of(4), [](Node& node, VectorSink&) {
    node.compute(lasting(10 * (node.rank() + 1)), real_work);
    if (node.rank() > 0) {
      node.send(0, note());
      return;
    }
    for (int peer = 1; peer < node.size(); ++peer) node.recv({peer, 1});
    print("together", node);
  });
}

// Two kernels on node 0, then a word to node 1, which tells when it came.
void in_turn(bool started_at_once) {
  run_in_guest(star_of(2), [=](Node& node, VectorSink&) {
    if (node.rank() == 1) {
      node.recv({0, 1});
      print(started_at_once ? "started_at_once" : "in_turn", node);
      return;
    }
    if (started_at_once) {
      node.start(lasting(30), real_work);
      node.finish(node.start(lasting(50), real_work));
    } else {
      node.compute(lasting(30), real_work);
      node.compute(lasting(50), real_work);
    }
    node.send(1, note());
  });
}

// Node 0 sends 2 MB to node 1 and gets a word back; meanwhile, or before, it computes.
void transfer(const std::string& name, std::int64_t kernel_ms, bool overlapping,
              Duration message = {}) {
  run_in_guest(star_of(2, message), [=](Node& node, VectorSink&) {
    if (node.rank() == 1) {
      node.recv({0, 1});
      node.send(0, note());
      return;
    }
    Device::Handle kernel;
    if (overlapping)
      kernel = node.start(lasting(kernel_ms), real_work);
    else
      node.compute(lasting(kernel_ms), real_work);
    node.send(1, {MessageKind::gradient, 1, {}, {Tensor({500'000})}});
    node.recv({1, 1});
    if (overlapping) node.finish(kernel);
    print(name, node);
  });
}

}  // namespace
}  // namespace orrery::test

int main(int, char** argv) {
  using namespace orrery::test;
  const std::string name = argv[1];
  if (name == "together") together();
  if (name == "in_turn") in_turn(false);
  if (name == "started_at_once") in_turn(true);
  if (name == "transfer") transfer(name, 0, true);
  if (name == "short_kernel_beside") transfer(name, 50, true);
  if (name == "long_kernel_beside") transfer(name, 400, true);
  if (name == "kernel_before") transfer(name, 50, false);
  if (name == "dear_messages") transfer(name, 400, true, orrery::Duration::milliseconds(3));
  return 0;
}
