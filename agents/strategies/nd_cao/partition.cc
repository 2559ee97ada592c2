#include "agents/strategies/nd_cao/partition.hh"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/philox.hh"

namespace orrery::nd_cao {
namespace {

using Indices = std::vector<std::int64_t>;

std::vector<std::pair<std::int64_t, std::int64_t>> to_ranges(Indices indices) {
  std::sort(indices.begin(), indices.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const std::int64_t index : indices) {
    if (!ranges.empty() && ranges.back().second == index) {
      ++ranges.back().second;
    } else {
      ranges.emplace_back(index, index + 1);
    }
  }
  return ranges;
}

/// How many parametric layers each node takes, minimising the slowest stage.
std::vector<int> balance(const ClusterView& cluster, const std::vector<double>& cost) {
  const std::size_t nodes = cluster.nodes.size();
  const std::size_t layers = cost.size();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // worst[n][l]: the least possible time of the slowest of n nodes that hold the first l layers.
  std::vector<std::vector<double>> worst(nodes + 1, std::vector<double>(layers + 1, infinity));
  std::vector<std::vector<std::size_t>> taken(nodes + 1, std::vector<std::size_t>(layers + 1, 0));
  worst[0][0] = 0;
  for (std::size_t n = 1; n <= nodes; ++n) {
    for (std::size_t l = n; l <= layers; ++l) {
      double own = 0;
      for (std::size_t take = 1; take <= l - (n - 1); ++take) {
        own += cost[l - take] / cluster.nodes[n - 1].speed;
        const double slowest = std::max(own, worst[n - 1][l - take]);
        if (slowest < worst[n][l]) {
          worst[n][l] = slowest;
          taken[n][l] = take;
        }
      }
    }
  }
  std::vector<int> counts(nodes);
  std::size_t left = layers;
  for (std::size_t n = nodes; n > 0; --n) {
    counts[n - 1] = static_cast<int>(taken[n][left]);
    left -= taken[n][left];
  }
  return counts;
}

}  // namespace

std::vector<std::pair<int, int>> cut_layers(const ClusterView& cluster, const ModelSpec& model,
                                            bool by_flops) {
  const std::vector<int> parametric = model.parametric_layers();
  const int layers = static_cast<int>(parametric.size());
  if (cluster.size() < 1) throw PlacementError("there are no nodes; name at least one");
  if (cluster.size() > layers) {
    throw PlacementError("model " + model.name + " has " + std::to_string(layers) +
                         " layers with parameters and cannot be cut into " +
                         std::to_string(cluster.size()) + " stages; use at most " +
                         std::to_string(layers) + " nodes or a deeper model");
  }
  std::vector<int> counts = cluster.stage_layers;
  if (counts.empty()) {
    std::vector<double> cost;
    for (std::size_t i = 0; i < parametric.size(); ++i) {
      const int begin = i == 0 ? 0 : parametric[i];
      const int end = i + 1 < parametric.size() ? parametric[i + 1] : model.layer_count();
      cost.push_back(by_flops ? model.forward_flops(begin, end) : 1.0);
    }
    ClusterView even = cluster;
    if (!by_flops) {
      for (auto& node : even.nodes) node.speed = 1;
    }
    counts = balance(even, cost);
  }
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  if (static_cast<int>(counts.size()) != cluster.size() || total != layers ||
      std::any_of(counts.begin(), counts.end(), [](int count) { return count < 1; })) {
    throw PlacementError("the stages name " + std::to_string(total) + " parametric layers on " +
                         std::to_string(counts.size()) + " nodes; model " + model.name + " has " +
                         std::to_string(layers) + ", and each of the " +
                         std::to_string(cluster.size()) + " nodes needs one or more");
  }
  std::vector<std::pair<int, int>> stages;
  std::size_t next = 0;
  int begin = 0;
  for (const int count : counts) {
    next += static_cast<std::size_t>(count);
    const int end = next < parametric.size() ? parametric[next] : model.layer_count();
    stages.emplace_back(begin, end);
    begin = end;
  }
  return stages;
}

std::vector<BlockSpec> cut_blocks(const ModelSpec& model, int first, int last, Partition partition,
                                  int parts, std::uint64_t seed) {
  const std::vector<ParameterSpec> tensors = model.parameters(first, last);
  std::vector<std::string> names;
  std::vector<Indices> groups;

  std::string whole = tensors.front().layer;
  if (tensors.back().layer != whole) whole += ".." + tensors.back().layer;
  if (partition == Partition::layer || partition == Partition::tensor) {
    for (const ParameterSpec& tensor : tensors) {
      const bool by_layer = partition == Partition::layer;
      const std::string name = by_layer ? tensor.layer : tensor.layer + "." + tensor.name;
      if (names.empty() || names.back() != name) {
        names.push_back(name);
        groups.emplace_back();
      }
      for (std::int64_t i = 0; i < tensor.count; ++i) groups.back().push_back(tensor.offset + i);
    }
  } else {
    groups.resize(static_cast<std::size_t>(parts));
    for (int part = 0; part < parts; ++part) {
      names.push_back(parts == 1 ? whole : whole + "/" + std::to_string(part));
    }
    Philox random(seed, whole + "/partition");
    const std::int64_t total = model.parameter_count(first, last);
    std::int64_t position = 0;
    for (const ParameterSpec& tensor : tensors) {
      // A row is an output neuron or a kernel with its bias: both tensors have it as first extent.
      const std::int64_t rows = tensor.shape.front();
      const std::int64_t row_size = tensor.count / rows;
      for (std::int64_t i = 0; i < tensor.count; ++i, ++position) {
        std::int64_t part = 0;
        if (partition == Partition::rows) part = (i / row_size) * parts / rows;
        if (partition == Partition::chunks) part = position * parts / total;
        if (partition == Partition::random) part = random.below(static_cast<std::uint32_t>(parts));
        groups[static_cast<std::size_t>(part)].push_back(tensor.offset + i);
      }
    }
  }

  std::vector<BlockSpec> blocks;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].empty()) blocks.push_back({names[i], to_ranges(std::move(groups[i]))});
  }
  return blocks;
}

void check_blocks(std::span<const BlockSpec> blocks, std::int64_t begin, std::int64_t end) {
  struct Range {
    std::int64_t begin;
    std::int64_t end;
    const BlockSpec* block;
  };
  std::vector<Range> ranges;
  for (const BlockSpec& block : blocks) {
    if (block.count() <= 0) throw PlacementError("block '" + block.name + "' has no parameters");
    for (const auto& [from, to] : block.ranges) {
      if (from < begin || to > end) {
        throw PlacementError("block '" + block.name +
                             "' touches parameters of another node; a "
                             "block lies within one node's layers");
      }
      ranges.push_back({from, to, &block});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::int64_t covered = begin;
  for (const Range& range : ranges) {
    if (range.begin < covered) {
      throw PlacementError("block '" + range.block->name +
                           "' touches parameters of another block; "
                           "each parameter belongs to one");
    }
    if (range.begin > covered) break;
    covered = range.end;
  }
  if (covered != end) {
    throw PlacementError("parameter " + std::to_string(covered) +
                         " belongs to no block; each parameter belongs to one");
  }
}

}  // namespace orrery::nd_cao
