#include "tests/support/nd_cao_times.hh"

#include <algorithm>
#include <numeric>

namespace orrery::test {
namespace {

/// The least time from result to result that stage `i` allows.
double stage_period(const NdCaoTimes& times, std::size_t i, int in_flight, int staleness) {
  const double W = in_flight;
  const double R = times.round();
  const double f = times.forward[i];
  const double u = times.move[i];
  const bool first = i == 0;
  const bool last = i + 1 == times.forward.size();

  // The others always wait before this stage. A forward goes before a move, so it moves only when
  // the bound on staleness has stopped the starts; then it idles until one comes to it again.
  if (W * f >= R) {
    double way = first ? 0 : times.scalar;
    for (std::size_t j = 0; j < i; ++j) way += times.forward[j] + times.hop[j];
    return f + (u + way) / staleness;
  }
  // Node 0 starts the next evaluation before it moves: one version serves W + 1 of them.
  if (first) return (R + f + u) / (W + 1);

  // From the beginning of a forward with a new version to the end of the next move, if nothing
  // comes in between: the version's loss takes `back` to be here.
  double back = last ? 0 : times.scalar;
  for (std::size_t j = i + 1; j < times.forward.size(); ++j)
    back += times.hop[j - 1] + times.forward[j];
  const double turn = f + back + u;
  // Either the evaluations stay apart and each has its own version; each then waits for a move …
  if ((W - 1) * turn + f + back <= R) return W * turn >= R ? turn : 0;
  // … or they come together behind a move, and share one.
  return (std::max(W * f, f + back) + u) / W;
}

}  // namespace

double NdCaoTimes::round() const {
  return std::accumulate(forward.begin(), forward.end(), scalar) +
         std::accumulate(hop.begin(), hop.end(), 0.0);
}

std::vector<double> sync_results(const NdCaoTimes& times, int count) {
  const std::size_t stages = times.forward.size();
  std::vector<double> published;
  for (int k = 0; k < count; ++k) {
    double done = 0;
    for (std::size_t i = 0; i < stages; ++i) {
      const bool last = i + 1 == stages;
      const double own = k == 0 ? 0 : published.back() + (last ? 0 : times.scalar) + times.move[i];
      const double arrives = i == 0 ? 0 : done + times.hop[i - 1];
      done = std::max(own, arrives) + times.forward[i];
    }
    published.push_back(done);
  }
  return published;
}

double async_period(const NdCaoTimes& times, int in_flight, int staleness) {
  double period = std::max(times.line, times.round() / in_flight);
  for (std::size_t i = 0; i < times.forward.size(); ++i)
    period = std::max(period, stage_period(times, i, in_flight, staleness));
  return period;
}

}  // namespace orrery::test
