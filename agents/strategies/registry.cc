#include "agents/strategies/builtin.hh"
#include "agents/strategies/nd_cao/nd_cao.hh"

namespace orrery {

const std::vector<StrategyInfo>& strategies() {
  static const std::vector<StrategyInfo> all{nd_cao_info(), parameter_server_info(),
                                             sgd_allreduce_info()};
  return all;
}

}  // namespace orrery
