#include "agents/strategies/nd_cao/block.hh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace orrery::nd_cao {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Moves whose predictions are compared with what was seen.
constexpr std::size_t prediction_memory = 30;

/// Streams of one block's random numbers; a draw depends on (seed, block, own move number) alone.
std::uint64_t stream_key(std::uint64_t seed, const std::string& block, const char* purpose) {
  return hash_name(purpose, hash_name(block)) ^ (seed * 0x9E3779B97F4A7C15ull);
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    const double shared = 0.5 * static_cast<double>(i + j - 1);  // ties share their mean rank
    for (; i < j; ++i) result[order[i]] = shared;
  }
  return result;
}

}  // namespace

void uniform_row(std::uint64_t key, std::uint64_t sequence, std::uint64_t row,
                 std::span<float> out) {
  std::size_t i = 0;
  for (std::uint64_t quad = 0; i < out.size(); ++quad) {
    const auto words = philox4x32(key, sequence, (row << 32) | quad);
    for (std::size_t w = 0; w < words.size() && i < out.size(); ++w, ++i) {
      // 24 bits, so that the float is exact and never reaches 1.
      out[i] = static_cast<float>(words[w] >> 8) * 0x1.0p-23f - 1.0f;
    }
  }
}

double rank_correlation(const std::deque<std::pair<double, double>>& pairs) {
  if (pairs.size() < 3) return none;
  std::vector<double> first;
  std::vector<double> second;
  for (const auto& [a, b] : pairs) {
    first.push_back(a);
    second.push_back(b);
  }
  first = ranks(first);
  second = ranks(second);
  const double mean = 0.5 * static_cast<double>(pairs.size() - 1);
  double covariance = 0;
  double spread_first = 0;
  double spread_second = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    covariance += (first[i] - mean) * (second[i] - mean);
    spread_first += (first[i] - mean) * (first[i] - mean);
    spread_second += (second[i] - mean) * (second[i] - mean);
  }
  if (spread_first <= 0 || spread_second <= 0) return none;
  return covariance / std::sqrt(spread_first * spread_second);
}

Block::Block(std::string name, std::uint64_t seed, const BlockSettings& settings,
             std::vector<float> start, std::vector<float> scale)
    : name_(std::move(name)),
      seed_(seed),
      settings_(settings),
      scale_(std::move(scale)),
      best_loss_(std::numeric_limits<double>::infinity()) {
  if (start.empty()) throw std::logic_error("block '" + name_ + "' has no parameters");
  if (scale_.size() != start.size()) {
    throw std::logic_error("block '" + name_ + "' has " + std::to_string(start.size()) +
                           " parameters and " + std::to_string(scale_.size()) + " scales");
  }
  current_ = {versions_++, std::make_shared<const std::vector<float>>(std::move(start))};
  best_ = current_;
}

std::optional<Move> Block::in_force(std::int64_t k) {
  pending_.push_back({k, current_});
  return std::exchange(fresh_, std::nullopt);
}

void Block::result(std::int64_t k, double loss, bool best, bool usable) {
  if (pending_.empty() || pending_.front().k != k) {
    throw std::logic_error("block '" + name_ + "' got the result of evaluation " +
                           std::to_string(k) + " out of order");
  }
  const Version version = std::move(pending_.front().version);
  pending_.pop_front();
  newest_result_ = k;
  if (!usable) return;

  if (best) {
    best_ = version;
    best_loss_ = loss;
  }
  if (version.number == current_.number) {
    answered_ = true;
    if (std::exchange(awaiting_first_loss_, false)) remember_prediction(loss);
  }
  if (!std::isfinite(loss)) {
    // The worst value known, so that the fit leans away from here without being blown up by it.
    if (window_.empty()) return;
    loss = std::max_element(window_.begin(), window_.end(), [](const Entry& a, const Entry& b) {
             return a.loss < b.loss;
           })->loss;
  }
  const auto known = std::find_if(window_.begin(), window_.end(), [&](const Entry& entry) {
    return entry.version.number == version.number;
  });
  if (known != window_.end()) {
    known->loss = loss;
    return;
  }
  window_.push_back({version, loss});
  if (window_.size() > static_cast<std::size_t>(settings_.window)) window_.pop_front();
}

bool Block::estimates() const {
  return settings_.estimator && window_.size() >= static_cast<std::size_t>(smallest_window);
}

void Block::remember_prediction(double loss) {
  if (!std::isfinite(loss) || !std::isfinite(move_.predicted_change)) return;
  predictions_.emplace_back(move_.predicted_change, loss - reference_loss_);
  if (predictions_.size() > prediction_memory) predictions_.pop_front();
}

void Block::fit() {
  estimator_.reset();
  if (!estimates()) return;
  Philox random(seed_, name_ + "/monomials", moves_);
  basis_ = draw_basis(random, settings_.monomials, count());
  std::vector<Observation> observations;
  observations.reserve(window_.size());
  for (const Entry& entry : window_) observations.push_back({*entry.version.values, entry.loss});
  estimator_ = Estimator::fit(basis_, observations, settings_.ridge);
}

void Block::score(double step) {
  if (!estimator_) return;
  const std::size_t touched = basis_.touched.size();
  std::vector<float> middle(touched);
  std::vector<float> reach(touched);
  basis_.gather(*centre().values, middle);
  basis_.gather(scale_, reach);
  for (float& r : reach) r *= static_cast<float>(step);

  const std::uint64_t key = stream_key(seed_, name_, "/candidates");
  std::vector<float> zeta(touched);
  // Candidate n again whenever it is wanted: its numbers depend on n alone.
  const auto draw = [&](std::int64_t n) {
    const std::int64_t row = settings_.antithetic ? n - n % 2 : n;
    uniform_row(key, moves_, static_cast<std::uint64_t>(row), zeta);
    if (row != n) {
      for (float& z : zeta) z = -z;
    }
  };
  std::vector<float> point(touched);
  const auto estimate = [&](const std::vector<float>& offsets) {
    for (std::size_t i = 0; i < touched; ++i) point[i] = middle[i] + reach[i] * offsets[i];
    return (*estimator_)(point);
  };
  std::vector<std::pair<double, std::int64_t>> ranking;
  ranking.reserve(static_cast<std::size_t>(settings_.candidates));
  for (std::int64_t n = 0; n < settings_.candidates; ++n) {
    draw(n);
    ranking.emplace_back(estimate(zeta), n);
  }
  const std::int64_t top = std::min(settings_.top, settings_.candidates);
  std::partial_sort(ranking.begin(), ranking.begin() + top, ranking.end());
  chosen_.assign(touched, 0.0f);
  for (std::int64_t t = 0; t < top; ++t) {
    draw(ranking[static_cast<std::size_t>(t)].second);
    for (std::size_t i = 0; i < touched; ++i) chosen_[i] += zeta[i];
  }
  if (top > 1) {
    // A mean is short; it goes as far as one candidate does on average.
    double square = 0;
    for (const float z : chosen_) square += static_cast<double>(z) * z;
    const double length = std::sqrt(static_cast<double>(touched) / 3.0);
    const auto stretch = static_cast<float>(square > 0 ? length / std::sqrt(square) : 0.0);
    for (float& z : chosen_) z *= stretch;
  }
  move_.predicted = estimate(chosen_);
  move_.predicted_change = move_.predicted - (*estimator_)(middle);
}

void Block::fill(double step) {
  auto values = std::make_shared<std::vector<float>>(*centre().values);
  std::vector<float> zeta(values->size());
  uniform_row(stream_key(seed_, name_, "/fill"), moves_, 0, zeta);
  if (estimator_) {
    for (std::size_t i = 0; i < chosen_.size(); ++i) zeta[basis_.touched[i]] = chosen_[i];
  } else {
    move_.predicted = move_.predicted_change = none;
  }
  const float a = static_cast<float>(step);
  for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] += (a * scale_[i]) * zeta[i];

  move_.number = moves_++;
  move_.newest = newest_result_;
  move_.step = step;
  move_.rank_correlation = rank_correlation(predictions_);
  fresh_ = move_;
  awaiting_first_loss_ = true;
  reference_loss_ = best_loss_;
  current_ = {versions_++, std::move(values)};
  answered_ = false;
  estimator_.reset();
}

void Block::forget() {
  window_.clear();
  predictions_.clear();
  awaiting_first_loss_ = false;
  answered_ = false;
  best_loss_ = std::numeric_limits<double>::infinity();
}

void Block::return_to_best() {
  current_ = best_;
  answered_ = false;
  awaiting_first_loss_ = false;
  fresh_.reset();
}

}  // namespace orrery::nd_cao
