// What a run did over time: series for charts, thinned to a number of points.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emulator/results/run_log.hh"

namespace orrery::results {

struct Point {
  std::int64_t t = 0;  ///< ns, emulated
  double bytes = 0;    ///< on the wire by then, in all
  double value = 0;    ///< finite
};

struct Curve {
  std::string name;
  std::vector<Point> points;
};

/// Bytes that had left the nodes by emulated time t: each link's counter, linear between readings.
class WireBytes {
 public:
  explicit WireBytes(const RunLog& log);
  double at(std::int64_t t) const;
  std::int64_t total() const { return readings_.back().second; }
  /// Readings after the start; one means that everything between is a straight line.
  std::size_t readings() const { return readings_.size() - 1; }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> readings_{{0, 0}};  ///< (t, bytes), ascending
};

Curve test_accuracy(const RunLog& log, const WireBytes& bytes, std::size_t limit);
Curve test_loss(const RunLog& log, const WireBytes& bytes, std::size_t limit);
/// The loss that the strategy itself sees: the best objective so far, or the mean training loss (of
/// several steps each where there are many; the curve's name says so).
Curve own_loss(const RunLog& log, const WireBytes& bytes, std::size_t limit);

/// At most `limit` points: the first, the last, and of each bucket between (equal in number) the
/// lowest and the highest in their order, so that no spike is lost.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit);

}  // namespace orrery::results
