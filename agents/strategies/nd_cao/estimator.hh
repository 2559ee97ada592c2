// A block's estimate of the global loss as a function of its own coordinates.
//
// The regressors are random monomials of few coordinates, redrawn at every move, min-max scaled
// over the window and fitted by ridge regression in its dual form, for there are far fewer
// observations than regressors. Form and defaults follow Michailidis and Korkas's L4GPCAO (2015);
// theory: Kosmatopoulos, Automatica 45, 2009, 716-723.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.hh"

namespace orrery::nd_cao {

/// A product of one to three coordinates of a block; the same coordinate may occur twice.
struct Monomial {
  int order = 1;
  std::array<std::uint32_t, 3> factors{};  ///< the first `order` count

  /// `point` holds what `factors` index.
  double value(std::span<const float> point) const {
    double product = point[factors[0]];
    for (std::size_t i = 1; i < static_cast<std::size_t>(order); ++i) product *= point[factors[i]];
    return product;
  }
};

/// Monomials over the coordinates that they touch. The rest of a block has no part in its estimate,
/// which is what makes scoring a candidate independent of the block's size.
struct Basis {
  std::vector<std::uint32_t> touched;  ///< coordinates of the block, ascending
  std::vector<Monomial> monomials;     ///< factors index `touched`

  /// Picks the touched coordinates out of a whole block.
  void gather(std::span<const float> block, std::span<float> out) const;
};

/// `count` monomials of orders 1, 2, 3 in turn, coordinates uniform in [0, dimension), with
/// replacement.
Basis draw_basis(Philox& random, std::int64_t count, std::int64_t dimension);

/// What the window holds: a version's parameters and the latest loss seen with them.
struct Observation {
  std::span<const float> block;
  double loss = 0;
};

/// A fitted estimate: constant + Σ weight · monomial, with the scaling folded into the weights.
class Estimator {
 public:
  /// Ridge fit of the observations' losses; features are scaled to [−10, 10] over the observations
  /// (a feature without range counts 0), the constant is not penalised.
  /// Throws std::logic_error without observations.
  static Estimator fit(const Basis& basis, std::span<const Observation> window, double ridge);

  /// The estimate at a point given by its touched coordinates; unclipped outside the window's
  /// range.
  double operator()(std::span<const float> touched) const;

  double constant() const { return constant_; }
  /// In the order of the basis's monomials, of the unscaled features.
  const std::vector<double>& weights() const { return weights_; }

 private:
  const Basis* basis_ = nullptr;
  double constant_ = 0;
  std::vector<double> weights_;
};

/// Features are scaled to ± this over the window.
inline constexpr double feature_range = 10.0;

/// Solves (ΦΦᵀ + λI) α = y by Cholesky and returns Φᵀα: the ridge weights of centred rows Φ
/// (rows × columns, row-major), as the dual has them. λ > 0.
std::vector<double> ridge_dual(std::span<const double> rows, std::span<const double> targets,
                               double ridge);

}  // namespace orrery::nd_cao
