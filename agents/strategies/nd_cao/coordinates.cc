#include "agents/strategies/nd_cao/coordinates.hh"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/philox.hh"

namespace orrery::nd_cao {
namespace {

class Plain : public Coordinates {
 public:
  Plain(const BlockSpec& block, const ModelSpec& model, std::int64_t begin,
        std::span<const float> stage_start, const StepUnits& units) {
    const auto tensors = model.parameters(0, model.layer_count());
    for (const auto& [from, to] : block.ranges) {
      for (std::int64_t i = from; i < to; ++i) {
        const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) {
          return i >= t.offset && i < t.offset + t.count;
        });
        indices_.push_back(static_cast<std::size_t>(i - begin));
        start_.push_back(stage_start[indices_.back()]);
        scale_.push_back(static_cast<float>(units.of(model, tensor->layer)));
      }
    }
  }
  std::vector<float> start() const override { return start_; }
  std::vector<float> scale() const override { return scale_; }
  void write(std::span<const float> coordinates, std::span<float> parameters) const override {
    for (std::size_t i = 0; i < indices_.size(); ++i) parameters[indices_[i]] = coordinates[i];
  }

 private:
  std::vector<std::size_t> indices_;
  std::vector<float> start_;
  std::vector<float> scale_;
};

/// The first layer's rows that a block holds whole.
std::vector<std::int64_t> rows_of(const BlockSpec& block, const ModelSpec& model) {
  const ParameterSpec weight = model.parameters(0, model.layer_count()).front();
  const std::int64_t features = weight.count / weight.shape[0];
  std::vector<std::int64_t> rows;
  for (const auto& [from, to] : block.ranges) {
    for (std::int64_t i = from; i < to && i < weight.count; i += features) {
      rows.push_back(i / features);
    }
  }
  return rows;
}

class InputComponents : public Coordinates {
 public:
  InputComponents(const BlockSpec& block, const ModelSpec& model, std::int64_t begin,
                  std::span<const float> stage_start, const Components& components,
                  double whitening, const StepUnits& units)
      : components_(components), rows_(rows_of(block, model)) {
    const auto tensors = model.parameters(0, model.layer_count());
    const ParameterSpec& weight = tensors.front();
    features_ = static_cast<std::size_t>(components.features);
    rank_ = components.root_mean_square.size();
    weight_ = static_cast<std::size_t>(weight.offset - begin);
    bias_ = static_cast<std::size_t>(weight.offset + weight.count - begin);
    const double step = units.of(model, weight.layer);

    for (const std::int64_t row : rows_) {
      const auto from = stage_start.subspan(offset(row), features_);
      std::vector<double> rest(from.begin(), from.end());
      for (std::size_t c = 0; c < rank_; ++c) {
        double along = 0;
        for (std::size_t f = 0; f < features_; ++f) along += direction(c)[f] * from[f];
        for (std::size_t f = 0; f < features_; ++f) rest[f] -= along * direction(c)[f];
        start_.push_back(static_cast<float>(along));
        const double stretch =
            std::pow(components.root_mean_square[0] / components.root_mean_square[c], whitening);
        scale_.push_back(static_cast<float>(step * stretch));
      }
      rest_.insert(rest_.end(), rest.begin(), rest.end());
    }
    for (const std::int64_t row : rows_) {
      start_.push_back(stage_start[bias_ + static_cast<std::size_t>(row)]);
      scale_.push_back(static_cast<float>(step));
    }
  }

  std::vector<float> start() const override { return start_; }
  std::vector<float> scale() const override { return scale_; }
  void write(std::span<const float> coordinates, std::span<float> parameters) const override {
    std::vector<double> values(features_);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t f = 0; f < features_; ++f) values[f] = rest_[r * features_ + f];
      for (std::size_t c = 0; c < rank_; ++c) {
        const double along = coordinates[r * rank_ + c];
        for (std::size_t f = 0; f < features_; ++f) values[f] += along * direction(c)[f];
      }
      for (std::size_t f = 0; f < features_; ++f) {
        parameters[offset(rows_[r]) + f] = static_cast<float>(values[f]);
      }
      parameters[bias_ + static_cast<std::size_t>(rows_[r])] =
          coordinates[rows_.size() * rank_ + r];
    }
  }

 private:
  const double* direction(std::size_t c) const {
    return components_.directions.data() + c * features_;
  }
  std::size_t offset(std::int64_t row) const {
    return weight_ + static_cast<std::size_t>(row) * features_;
  }

  Components components_;
  std::vector<std::int64_t> rows_;
  std::size_t features_ = 0;
  std::size_t rank_ = 0;
  std::size_t weight_ = 0;
  std::size_t bias_ = 0;
  std::vector<double> rest_;  ///< of the start, outside the components; rows × features
  std::vector<float> start_;
  std::vector<float> scale_;
};

}  // namespace

double StepUnits::of(const ModelSpec& model, const std::string& layer) const {
  const auto tensors = model.parameters(0, model.layer_count());
  double step = layer == tensors.back().layer ? last_factor : 1;
  for (const ParameterSpec& tensor : tensors) {
    if (by_fan_in && tensor.layer == layer && tensor.shape.size() > 1) {
      step /= std::sqrt(static_cast<double>(tensor.count / tensor.shape[0]));
    }
  }
  return step;
}

std::unique_ptr<Coordinates> plain_coordinates(const BlockSpec& block, const ModelSpec& model,
                                               std::int64_t begin,
                                               std::span<const float> stage_start,
                                               const StepUnits& units) {
  return std::make_unique<Plain>(block, model, begin, stage_start, units);
}

std::unique_ptr<Coordinates> input_coordinates(const BlockSpec& block, const ModelSpec& model,
                                               std::int64_t begin,
                                               std::span<const float> stage_start,
                                               const Components& components, double whitening,
                                               const StepUnits& units) {
  return std::make_unique<InputComponents>(block, model, begin, stage_start, components, whitening,
                                           units);
}

Components principal_components(std::span<const float> samples, std::int64_t features,
                                std::int64_t rank) {
  const auto n = static_cast<std::size_t>(features);
  const auto r = static_cast<std::size_t>(rank);
  if (r > n || r == 0 || samples.size() < n) {
    throw std::logic_error("cannot find " + std::to_string(rank) + " components of " +
                           std::to_string(features) + " features");
  }
  const double weight = static_cast<double>(n) / static_cast<double>(samples.size());
  std::vector<double> moments(n * n, 0.0);
  for (std::size_t s = 0; s + n <= samples.size(); s += n) {
    for (std::size_t a = 0; a < n; ++a) {
      const double x = weight * static_cast<double>(samples[s + a]);
      for (std::size_t b = 0; b <= a; ++b) moments[a * n + b] += x * samples[s + b];
    }
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < a; ++b) moments[b * n + a] = moments[a * n + b];
  }

  Components found{features, std::vector<double>(r * n), std::vector<double>(r)};
  Philox random(0, "principal components");
  for (double& value : found.directions) value = random.uniform(-1, 1);
  std::vector<double> image(r * n);
  for (int round = 0; round < subspace_rounds; ++round) {
    std::fill(image.begin(), image.end(), 0.0);
    for (std::size_t c = 0; c < r; ++c) {
      for (std::size_t a = 0; a < n; ++a) {
        const double x = found.directions[c * n + a];
        for (std::size_t b = 0; b < n; ++b) image[c * n + b] += x * moments[a * n + b];
      }
    }
    for (std::size_t c = 0; c < r; ++c) {
      double* own = image.data() + c * n;
      for (std::size_t other = 0; other < c; ++other) {
        const double* before = image.data() + other * n;
        double along = 0;
        for (std::size_t a = 0; a < n; ++a) along += own[a] * before[a];
        for (std::size_t a = 0; a < n; ++a) own[a] -= along * before[a];
      }
      double length = 0;
      for (std::size_t a = 0; a < n; ++a) length += own[a] * own[a];
      length = std::sqrt(length);
      // Inputs of fewer directions than asked for: the rest stay unused rather than undefined.
      for (std::size_t a = 0; a < n; ++a) own[a] = length > 0 ? own[a] / length : 0.0;
      found.root_mean_square[c] = std::sqrt(std::max(length, 1e-12));
    }
    found.directions = image;
  }
  return found;
}

bool moves_in_inputs(const BlockSpec& block, const ModelSpec& model, int input_rank) {
  if (input_rank <= 0) return false;
  const auto tensors = model.parameters(0, model.layer_count());
  const ParameterSpec& weight = tensors.front();
  const std::int64_t end = weight.count + tensors[1].count;
  return std::all_of(block.ranges.begin(), block.ranges.end(),
                     [&](const auto& range) { return range.second <= end; });
}

std::int64_t coordinate_count(const BlockSpec& block, const ModelSpec& model, int input_rank) {
  if (!moves_in_inputs(block, model, input_rank)) return block.count();
  return static_cast<std::int64_t>(rows_of(block, model).size()) * (input_rank + 1);
}

KernelSpec write_kernel(const BlockSpec& block, const ModelSpec& model, int input_rank) {
  if (!moves_in_inputs(block, model, input_rank)) return copy_kernel(block.count());
  // One scaled addition a component and weight.
  return reduce_kernel(block.count() * input_rank);
}

}  // namespace orrery::nd_cao
