#include "agents/strategies/nd_cao/estimator.hh"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace orrery::nd_cao {
namespace {

/// In place: the lower triangle of `a` (n × n) becomes L with LLᵀ = a.
void cholesky(std::vector<double>& a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
}

/// Solves LLᵀ x = b in place.
void solve(const std::vector<double>& l, std::size_t n, std::vector<double>& x) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

}  // namespace

void Basis::gather(std::span<const float> block, std::span<float> out) const {
  for (std::size_t i = 0; i < touched.size(); ++i) out[i] = block[touched[i]];
}

Basis draw_basis(Philox& random, std::int64_t count, std::int64_t dimension) {
  Basis basis;
  basis.monomials.resize(static_cast<std::size_t>(count));
  int order = 0;
  for (Monomial& monomial : basis.monomials) {
    monomial.order = order + 1;
    order = (order + 1) % 3;
    for (std::size_t i = 0; i < static_cast<std::size_t>(monomial.order); ++i) {
      monomial.factors[i] = random.below(static_cast<std::uint32_t>(dimension));
      basis.touched.push_back(monomial.factors[i]);
    }
  }
  std::sort(basis.touched.begin(), basis.touched.end());
  basis.touched.erase(std::unique(basis.touched.begin(), basis.touched.end()), basis.touched.end());
  for (Monomial& monomial : basis.monomials) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(monomial.order); ++i) {
      const auto found =
          std::lower_bound(basis.touched.begin(), basis.touched.end(), monomial.factors[i]);
      monomial.factors[i] = static_cast<std::uint32_t>(found - basis.touched.begin());
    }
  }
  return basis;
}

std::vector<double> ridge_dual(std::span<const double> rows, std::span<const double> targets,
                               double ridge) {
  const std::size_t n = targets.size();
  const std::size_t columns = rows.size() / n;
  std::vector<double> gram(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = i == j ? ridge : 0.0;
      for (std::size_t m = 0; m < columns; ++m)
        sum += rows[i * columns + m] * rows[j * columns + m];
      gram[i * n + j] = sum;
    }
  }
  cholesky(gram, n);
  std::vector<double> alpha(targets.begin(), targets.end());
  solve(gram, n, alpha);

  std::vector<double> weights(columns, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t m = 0; m < columns; ++m) weights[m] += alpha[i] * rows[i * columns + m];
  }
  return weights;
}

Estimator Estimator::fit(const Basis& basis, std::span<const Observation> window, double ridge) {
  if (window.empty()) throw std::logic_error("an estimator needs observations");
  const std::size_t rows = window.size();
  const std::size_t columns = basis.monomials.size();

  std::vector<double> features(rows * columns);
  std::vector<float> point(basis.touched.size());
  std::vector<double> targets(rows);
  double mean = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    basis.gather(window[i].block, point);
    for (std::size_t m = 0; m < columns; ++m) {
      features[i * columns + m] = basis.monomials[m].value(point);
    }
    targets[i] = window[i].loss;
    mean += window[i].loss / static_cast<double>(rows);
  }
  for (double& target : targets) target -= mean;

  // Scaled by slope and then centred, so that the constant drops out of the penalised part.
  std::vector<double> slope(columns, 0.0);
  std::vector<double> centre(columns, 0.0);
  for (std::size_t m = 0; m < columns; ++m) {
    double low = features[m];
    double high = features[m];
    for (std::size_t i = 0; i < rows; ++i) {
      low = std::min(low, features[i * columns + m]);
      high = std::max(high, features[i * columns + m]);
      centre[m] += features[i * columns + m] / static_cast<double>(rows);
    }
    if (high > low) slope[m] = 2 * feature_range / (high - low);
    for (std::size_t i = 0; i < rows; ++i) {
      features[i * columns + m] = slope[m] * (features[i * columns + m] - centre[m]);
    }
  }

  Estimator estimator;
  estimator.basis_ = &basis;
  estimator.weights_ = ridge_dual(features, targets, ridge);
  estimator.constant_ = mean;
  for (std::size_t m = 0; m < columns; ++m) {
    estimator.weights_[m] *= slope[m];
    estimator.constant_ -= estimator.weights_[m] * centre[m];
  }
  return estimator;
}

double Estimator::operator()(std::span<const float> touched) const {
  double estimate = constant_;
  for (std::size_t m = 0; m < weights_.size(); ++m) {
    estimate += weights_[m] * basis_->monomials[m].value(touched);
  }
  return estimate;
}

}  // namespace orrery::nd_cao
