#include "agents/strategies/nd_cao/estimator.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "agents/strategies/nd_cao/linear.hh"

namespace orrery::nd_cao {
namespace {

std::vector<std::vector<float>> random_points(std::size_t count, std::size_t dimension) {
  Philox random(7, "points");
  std::vector<std::vector<float>> points(count, std::vector<float>(dimension));
  for (auto& point : points) {
    for (float& value : point) value = static_cast<float>(random.uniform(-1, 1));
  }
  return points;
}

double cubic(std::span<const float> x) {
  return 1.5 + 2.0 * x[0] - x[1] + 0.5 * x[0] * x[1] + 0.7 * x[2] * x[2] * x[1];
}

TEST(Basis, HasAThirdOfEachOrderOverCoordinatesOfTheBlock) {
  Philox random(1, "block", 3);
  const Basis basis = draw_basis(random, 150, 1000);
  std::array<int, 4> of_order{};
  for (const Monomial& monomial : basis.monomials)
    ++of_order[static_cast<std::size_t>(monomial.order)];
  EXPECT_EQ(of_order[1], 50);
  EXPECT_EQ(of_order[2], 50);
  EXPECT_EQ(of_order[3], 50);
  EXPECT_LE(basis.touched.size(), 300u);
  EXPECT_EQ(std::set<std::uint32_t>(basis.touched.begin(), basis.touched.end()).size(),
            basis.touched.size());
  EXPECT_LT(basis.touched.back(), 1000u);
}

TEST(Basis, IsRedrawnAtEachMoveAndDependsOnNothingElse) {
  const auto draw = [](std::uint64_t move) {
    Philox random(1, "block", move);
    return draw_basis(random, 30, 1000).touched;
  };
  EXPECT_EQ(draw(4), draw(4));
  EXPECT_NE(draw(4), draw(5));
}

TEST(Estimator, RecoversACubicOfFewVariables) {
  const auto points = random_points(60, 3);
  std::vector<Observation> window;
  for (const auto& point : points) window.push_back({point, cubic(point)});
  Philox random(1, "cubic");
  const Basis basis = draw_basis(random, 400, 3);
  const Estimator estimator = Estimator::fit(basis, window, 1e-6);
  std::vector<float> touched(basis.touched.size());
  for (const auto& point : random_points(80, 3)) {
    basis.gather(point, touched);
    EXPECT_NEAR(estimator(touched), cubic(point), 0.02);
  }
}

/// The primal normal equations, by Gaussian elimination: what the dual must equal.
std::vector<double> ridge_primal(const std::vector<double>& rows, const std::vector<double>& y,
                                 double ridge) {
  const std::size_t n = y.size();
  const std::size_t m = rows.size() / n;
  std::vector<std::vector<double>> a(m, std::vector<double>(m + 1, 0.0));
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t r = 0; r < n; ++r) a[i][j] += rows[r * m + i] * rows[r * m + j];
    }
    a[i][i] += ridge;
    for (std::size_t r = 0; r < n; ++r) a[i][m] += rows[r * m + i] * y[r];
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = i + 1; j < m; ++j) {
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k <= m; ++k) a[j][k] -= factor * a[i][k];
    }
  }
  std::vector<double> w(m);
  for (std::size_t i = m; i-- > 0;) {
    w[i] = a[i][m];
    for (std::size_t k = i + 1; k < m; ++k) w[i] -= a[i][k] * w[k];
    w[i] /= a[i][i];
  }
  return w;
}

TEST(Estimator, DualEqualsPrimal) {
  Philox random(3, "ridge");
  std::vector<double> rows(12 * 40);
  for (double& value : rows) value = random.uniform(-10, 10);
  std::vector<double> targets(12);
  for (double& value : targets) value = random.uniform(0, 3);
  const auto dual = ridge_dual(rows, targets, 10);
  const auto primal = ridge_primal(rows, targets, 10);
  for (std::size_t i = 0; i < dual.size(); ++i) EXPECT_NEAR(dual[i], primal[i], 1e-9);
}

TEST(Estimator, DoesNotPenaliseTheConstant) {
  const auto points = random_points(10, 4);
  std::vector<Observation> window;
  for (const auto& point : points) window.push_back({point, 1000.0});
  Philox random(1, "constant");
  const Basis basis = draw_basis(random, 30, 4);
  const Estimator estimator = Estimator::fit(basis, window, 10);
  std::vector<float> touched(basis.touched.size());
  basis.gather(points[0], touched);
  EXPECT_NEAR(estimator(touched), 1000.0, 1e-9);
}

TEST(Estimator, AFeatureWithoutRangeHasNoWeight) {
  std::vector<std::vector<float>> points{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}};
  std::vector<Observation> window;
  for (const auto& point : points) window.push_back({point, point[1] * 2.0});
  Basis basis;
  basis.touched = {0, 1};
  basis.monomials = {{1, {0, 0, 0}}, {1, {1, 0, 0}}};
  const Estimator estimator = Estimator::fit(basis, window, 1e-9);
  EXPECT_EQ(estimator.weights()[0], 0);
  EXPECT_NEAR(estimator.weights()[1], 2, 1e-6);
}

TEST(Estimator, IsUnclippedOutsideTheWindow) {
  std::vector<std::vector<float>> points{{0}, {1}, {2}, {3}, {4}};
  std::vector<Observation> window;
  for (const auto& point : points) window.push_back({point, 3.0 * point[0]});
  Basis basis;
  basis.touched = {0};
  basis.monomials = {{1, {0, 0, 0}}};
  const Estimator estimator = Estimator::fit(basis, window, 1e-9);
  EXPECT_NEAR(estimator(std::vector<float>{100}), 300, 1e-4);
}

/// `count` offsets of `size` coordinates, uniform in (−1, 1).
std::vector<std::vector<float>> offsets(std::size_t count, std::size_t size) {
  Philox random(1, "offsets");
  std::vector<std::vector<float>> rows(count, std::vector<float>(size));
  for (auto& row : rows) {
    for (float& value : row) value = static_cast<float>(random.uniform(-1, 1));
  }
  return rows;
}

TEST(LinearEstimate, FindsASlopeUnderATrendOfTheOthers) {
  // Loss = 3 x₀ − x₁, and falls by 10 each evaluation by the others' work.
  const auto rows = offsets(400, 4);
  std::vector<LinearObservation> window;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i);
    window.push_back({rows[i], 3 * rows[i][0] - rows[i][1] - 10.0 * static_cast<double>(k), k});
  }
  const LinearEstimate estimate = fit_linear(window);
  // The penalty of 4 against 400 offsets of mean square 1/3 shrinks by 3 %.
  EXPECT_NEAR(estimate.slope[0], 3, 0.2);
  EXPECT_NEAR(estimate.slope[1], -1, 0.1);
  EXPECT_NEAR(estimate.slope[2], 0, 0.1);
  EXPECT_NEAR(estimate.level, -3990, 1);
}

TEST(LinearEstimate, ATrendAloneHasNoSlope) {
  const auto rows = offsets(30, 10);
  std::vector<LinearObservation> window;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    window.push_back({rows[i], 5.0 - static_cast<double>(i), static_cast<std::int64_t>(i)});
  }
  for (const double slope : fit_linear(window).slope) EXPECT_NEAR(slope, 0, 1e-9);
  for (const float step : downhill(std::vector<double>(3, 0.0))) EXPECT_EQ(step, 0.0f);
}

TEST(LinearEstimate, DownhillHasAUnitRootMeanSquare) {
  const auto direction = downhill(std::vector<double>{3, -4, 0, 0});
  EXPECT_NEAR(direction[0], -1.2, 1e-6);
  EXPECT_NEAR(direction[1], 1.6, 1e-6);
  EXPECT_THROW(fit_linear({}), std::logic_error);
}

}  // namespace
}  // namespace orrery::nd_cao
