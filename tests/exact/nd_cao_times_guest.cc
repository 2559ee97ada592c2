// Runs in the time-travel kernel: nd_cao with the real transport on real network stacks, whose
// kernels take the times of nd_cao_cases.hh. Prints "NAME T1 T2 …" for the cases that its arguments
// name: when each result was published, in nanoseconds.

#include <cstring>
#include <string>

#include "agents/strategies/nd_cao/nd_cao.hh"
#include "tests/exact/guest_cluster.hh"
#include "tests/exact/nd_cao_cases.hh"

namespace orrery::test {
namespace {

Duration milliseconds(double value) { return Duration::seconds(value * 1e-3); }

bool run(const NdCaoCase& c) {
  static Dataset data;
  data = toy_dataset(4, 3, c.images);
  GuestCluster cluster;
  ClusterView view;
  for (std::size_t i = 0; i < c.forward.size(); ++i) {
    netshape::LinkSpec link;
    link.delay = milliseconds(c.delay / 2);
    netshape::StarNode node{"node" + std::to_string(i), link, link};
    if (c.slow_line_mbit > 0 && i == 1) {
      node.up.rate = BitRate::mbit(c.slow_line_mbit);
      node.up.queue = Bytes::mib(8);
    }
    view.nodes.push_back({node.name, 1});
    cluster.nodes.push_back(node);
    cluster.costs.push_back(std::make_shared<FixedCost>(
        std::map<KernelOp, Duration>{{KernelOp::forward, milliseconds(c.forward[i])},
                                     {KernelOp::fill, milliseconds(c.move[i])}}));
    cluster.schedules.push_back(
        static_cast<int>(i) == c.straggler ? SpeedSchedule({{Instant{}, 0.5}}) : SpeedSchedule());
  }
  cluster.workload.model = make_mlp({16, 6, 5, 4, 3}, LayerKind::tanh);
  cluster.workload.train_images = cluster.workload.objective_images = c.images;
  cluster.data = &data;
  cluster.options = Options(nd_cao_info().options);
  if (c.in_flight > 0) {
    cluster.options.set("mode", OptionValue(std::string("async")));
    cluster.options.set("in_flight", OptionValue(std::int64_t{c.in_flight}));
    cluster.options.set("staleness", OptionValue(std::int64_t{c.staleness}));
    cluster.options.set("caching", OptionValue(false));
  }
  cluster.stop.evaluations = c.evaluations;
  const auto strategy = nd_cao_info().make();
  cluster.placement = strategy->plan(view, cluster.workload, cluster.options, cluster.stop, 1);

  return run_in_guest(cluster, [&](Node& node, VectorSink& records) {
    strategy->run(node);
    if (node.rank() + 1 < node.size()) return;
    std::string line = c.name;
    for (const wire::Record& record : records.records)
      if (record.has_step() && record.step().phase() == "evaluation")
        line += " " + std::to_string(record.step().t());
    print_line(line);
  });
}

}  // namespace
}  // namespace orrery::test

int main(int argc, char** argv) {
  bool ok = true;
  for (int i = 1; i < argc; ++i)
    for (const orrery::test::NdCaoCase& c : orrery::test::nd_cao_cases())
      if (std::strcmp(argv[i], c.name) == 0) ok &= orrery::test::run(c);
  return ok ? 0 : 1;
}
