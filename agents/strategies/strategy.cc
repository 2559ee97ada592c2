#include "agents/strategy.hh"

namespace orrery {

int ClusterView::find(const std::string& name) const {
  for (int i = 0; i < size(); ++i)
    if (nodes[static_cast<std::size_t>(i)].name == name) return i;
  return -1;
}

std::int64_t BlockSpec::count() const {
  std::int64_t total = 0;
  for (const auto& [begin, end] : ranges) total += end - begin;
  return total;
}

const StrategyInfo* find_strategy(const std::string& name) {
  for (const StrategyInfo& info : strategies())
    if (info.name == name) return &info;
  return nullptr;
}

}  // namespace orrery
