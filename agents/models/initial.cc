#include <algorithm>
#include <cmath>

#include "agents/models/model.hh"
#include "base/philox.hh"

namespace orrery {

std::vector<float> initial_parameters(const ModelSpec& model, int first, int last,
                                      std::uint64_t seed) {
  // One gain for the whole model, so that a start does not depend on where it is cut.
  const bool rectified =
      std::any_of(model.layers.begin(), model.layers.end(),
                  [](const auto& layer) { return layer.kind == LayerKind::relu; });
  const double gain_squared = rectified ? 2.0 : 1.0;

  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(model.parameter_count(first, last)));
  for (const ParameterSpec& parameter : model.parameters(first, last)) {
    if (parameter.name != "weight") {
      values.insert(values.end(), static_cast<std::size_t>(parameter.count), 0.0f);
      continue;
    }
    const std::int64_t fan_in = parameter.count / parameter.shape.front();
    const double bound = std::sqrt(3.0 * gain_squared / static_cast<double>(fan_in));
    Philox draws(seed, parameter.layer);
    for (std::int64_t i = 0; i < parameter.count; ++i) {
      values.push_back(static_cast<float>(draws.uniform(-bound, bound)));
    }
  }
  return values;
}

}  // namespace orrery
