#include "emulator/results/curves.hh"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace orrery::results {
namespace {

// Links on which bytes leave a node: each byte is counted once, however many links it crosses.
// Where no link's name begins with a node's, all of them.
std::set<std::string> outgoing_links(const RunLog& log) {
  std::set<std::string> nodes;
  if (log.started) nodes.insert(log.started->nodes().begin(), log.started->nodes().end());
  std::set<std::string> all;
  std::set<std::string> outgoing;
  for (const wire::LinkCounters& record : log.link_counters) {
    all.insert(record.link());
    if (nodes.count(link_ends(record.link()).from)) outgoing.insert(record.link());
  }
  return outgoing.empty() ? all : outgoing;
}

// A mini-batch's loss is noisy: a curve of more points than this shows means of consecutive ones.
constexpr std::size_t training_points = 400;

std::vector<Point> averaged(const std::vector<Point>& points, std::size_t group) {
  std::vector<Point> means;
  for (std::size_t begin = 0; begin < points.size(); begin += group) {
    const std::size_t end = std::min(begin + group, points.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += points[i].value;
    means.push_back(points[end - 1]);
    means.back().value = sum / static_cast<double>(end - begin);
  }
  return means;
}

Curve from_evaluations(const RunLog& log, const WireBytes& bytes, std::size_t limit,
                       const std::string& name, double (wire::Evaluation::*value)() const) {
  std::vector<Point> points;
  for (const wire::Evaluation& record : log.evaluations) {
    const double v = (record.*value)();
    if (std::isfinite(v)) points.push_back({record.t(), bytes.at(record.t()), v});
  }
  return {name, thin(points, limit)};
}

}  // namespace

WireBytes::WireBytes(const RunLog& log) {
  const std::set<std::string> counted = outgoing_links(log);
  std::map<std::string, std::int64_t> now;
  std::int64_t sum = 0;
  for (const wire::LinkCounters& record : log.link_counters) {
    if (!counted.count(record.link())) continue;
    std::int64_t& link = now[record.link()];
    sum += record.bytes() - link;
    link = record.bytes();
    if (readings_.back().first >= record.t())
      readings_.back().second = sum;
    else
      readings_.emplace_back(record.t(), sum);
  }
}

double WireBytes::at(std::int64_t t) const {
  const auto after =
      std::upper_bound(readings_.begin(), readings_.end(), t,
                       [](std::int64_t time, const auto& reading) { return time < reading.first; });
  if (after == readings_.begin()) return 0;
  const auto& [t0, bytes0] = *std::prev(after);
  if (after == readings_.end()) return static_cast<double>(bytes0);
  const auto& [t1, bytes1] = *after;
  const double share = static_cast<double>(t - t0) / static_cast<double>(t1 - t0);
  return static_cast<double>(bytes0) + share * static_cast<double>(bytes1 - bytes0);
}

Curve test_accuracy(const RunLog& log, const WireBytes& bytes, std::size_t limit) {
  return from_evaluations(log, bytes, limit, "test accuracy", &wire::Evaluation::accuracy);
}

Curve test_loss(const RunLog& log, const WireBytes& bytes, std::size_t limit) {
  return from_evaluations(log, bytes, limit, "test loss", &wire::Evaluation::loss);
}

Curve own_loss(const RunLog& log, const WireBytes& bytes, std::size_t limit) {
  std::vector<Point> objective;
  std::map<std::int64_t, std::vector<const wire::Step*>> training;  // by step
  for (const wire::Step& step : log.steps) {
    if (!std::isfinite(step.loss())) continue;
    if (step.phase() == "evaluation") {
      const double best =
          objective.empty() ? step.loss() : std::min(objective.back().value, step.loss());
      objective.push_back({step.t(), bytes.at(step.t()), best});
    } else if (step.phase() == "step" || step.phase() == "update") {
      training[step.step()].push_back(&step);
    }
  }
  if (!objective.empty()) return {"objective loss, best so far", thin(objective, limit)};

  std::vector<Point> points;
  for (const auto& [unused, rows] : training) {
    double sum = 0;
    std::int64_t last = 0;
    for (const wire::Step* row : rows) {
      sum += row->loss();
      last = std::max(last, row->t());
    }
    points.push_back({last, bytes.at(last), sum / static_cast<double>(rows.size())});
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.t < b.t; });
  const std::size_t group = (points.size() + training_points - 1) / training_points;
  if (group > 1) points = averaged(points, group);
  return {"training loss, mean of the nodes" +
              (group > 1 ? " and of " + std::to_string(group) + " steps" : ""),
          thin(points, limit)};
}

std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit || limit < 4) return points;
  const std::size_t buckets = (limit - 2) / 2;
  const std::size_t inner = points.size() - 2;
  std::vector<Point> kept{points.front()};
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::size_t begin = 1 + b * inner / buckets;
    const std::size_t end = 1 + (b + 1) * inner / buckets;
    if (begin == end) continue;
    std::size_t low = begin;
    std::size_t high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (points[i].value < points[low].value) low = i;
      if (points[i].value > points[high].value) high = i;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
  }
  kept.push_back(points.back());
  return kept;
}

}  // namespace orrery::results
