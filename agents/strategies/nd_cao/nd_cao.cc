#include "agents/strategies/nd_cao/nd_cao.hh"

#include "agents/node.hh"
#include "agents/strategies/nd_cao/charged.hh"
#include "agents/strategies/nd_cao/participant.hh"
#include "agents/strategies/nd_cao/plan.hh"
#include "agents/strategies/nd_cao/settings.hh"

namespace orrery {
namespace {

class NdCao : public Strategy {
 public:
  Placement plan(const ClusterView& cluster, const WorkloadView& workload, const Options& options,
                 const StopRule& stop, std::uint64_t seed) const override {
    if (!stop.evaluations && !stop.time && !stop.loss) {
      throw PlacementError("nd_cao has no end; write stop: {evaluations: 2000}, time or loss");
    }
    return nd_cao::make_plan(cluster, workload, nd_cao::read_settings(options, stop), seed);
  }

  void run(Node& node) const override {
    nd_cao::Participant(node, nd_cao::read_settings(node.options(), node.stop())).run();
  }
};

}  // namespace

const StrategyInfo& nd_cao_info() {
  static const StrategyInfo info{
      .name = "nd_cao",
      .description = "gradient-free: each block learns from the global loss alone, sync or async",
      .paper =
          "Michailidis et al., Integrated Computer-Aided Engineering 31(1), 2024, 19-41, "
          "doi 10.3233/ICA-230718",
      .options = nd_cao::option_specs(),
      .stops = {"evaluations", "time", "loss"},
      .make = [] { return std::make_unique<NdCao>(); },
      .staged = true,
      .counts_evaluations = true,
      .register_kernels = nd_cao::register_profiled_kernels};
  return info;
}

}  // namespace orrery
