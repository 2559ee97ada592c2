#include "tests/emulator/results/sample_suite.hh"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "base/philox.hh"
#include "emulator/results/report.hh"
#include "tests/emulator/results/records.hh"

namespace orrery::results::testing {
namespace {

const std::vector<std::string> boards{"pi0", "pi1", "jetson", "server"};
constexpr std::array speeds{0.25, 0.25, 0.6, 1.0};
constexpr std::int64_t ms = 1'000'000;

struct Shape {
  std::string name;
  std::string strategy;
  bool gradient_free;
  std::int64_t period_ns;  ///< of a step
  int steps;
  double final_accuracy;
  double final_loss;
};

std::vector<wire::Record> make_run(const Shape& shape) {
  Philox random(7, shape.name);
  std::vector<wire::Record> records{started(shape.name, shape.strategy, boards)};
  for (std::size_t n = 0; n < boards.size(); ++n) {
    const double delay = 0.005 * static_cast<double>(n + 1);
    const double rate = n == 0 ? 2e7 : 1e8;
    for (const std::string& link : {boards[n] + "->switch", "switch->" + boards[n]}) {
      records.push_back(check(link, "delay", delay, delay, delay * 1.0004, "ok"));
      const bool off = shape.name == "ps_async" && link == "switch->jetson";
      records.push_back(check(link, "rate", rate, rate, off ? rate * 0.93 : rate * 0.999,
                              off ? "off by 7.0 %" : "ok"));
      records.push_back(check(link, "loss", n == 1 ? 0.001 : 0, n == 1 ? 0.001 : 0, nan,
                              n == 1 ? "not measured" : "none asked"));
      records.push_back(check(link, "burst", nan, 21e-6, nan, ""));
    }
  }
  std::int64_t t = 0;
  std::int64_t bytes = 0;
  double best = 9;
  for (int k = 0; k < shape.steps; ++k) {
    const bool slow = t > 20'000 * ms && t < 32'000 * ms;
    const std::int64_t period = slow ? shape.period_ns * 2 : shape.period_ns;
    const double progress = 1 - std::exp(-6.0 * k / shape.steps);
    const double loss = 2.3 + (shape.final_loss - 2.3) * progress + 0.06 * random.normal();
    best = std::min(best, loss);
    for (int n = 0; n < 4 && k < 400; ++n) {
      const auto at = [&](double share) {
        return t + static_cast<std::int64_t>(share * static_cast<double>(period));
      };
      if (shape.gradient_free) {
        records.push_back(span(at(0.22 * n), at(0.22 * n + 0.17), n, "compute", "forward stage"));
        records.push_back(span(at(0.22 * n + 0.17), at(0.22 * n + 0.22), n, "send", "activation"));
        if (n)
          records.push_back(span(at(0), at(0.22 * n), n, "wait",
                                 "activation from " + boards[static_cast<std::size_t>(n - 1)]));
      } else {
        const double busy = 0.12 / speeds[static_cast<std::size_t>(n)];
        records.push_back(span(at(0), at(busy), n, "compute", "forward_backward:64"));
        records.push_back(span(at(busy), at(0.62), n, "wait", "gradient"));
        records.push_back(span(at(0.62), at(0.97), n, "send", "gradient to next"));
      }
    }
    t += period;
    if (shape.gradient_free)
      records.push_back(step(t, 3, k, "evaluation", loss, 2000, {{"best", best}}));
    else
      for (int n = 0; n < 4; ++n)
        records.push_back(step(t, n, k, shape.strategy == "parameter_server" ? "update" : "step",
                               loss + 0.02 * n, 64));
    bytes += shape.gradient_free ? 960'000 : 86'000;
    if (k % std::max(1, shape.steps / 40) == 0 || k + 1 == shape.steps) {
      for (std::size_t n = 0; n < boards.size(); ++n) {
        records.push_back(counters(t, boards[n] + "->switch", bytes / 6000, bytes / 4, k / 50));
        records.push_back(counters(t, "switch->" + boards[n], bytes / 6000, bytes / 4, 0));
      }
      records.push_back(
          evaluation(t, k, 0.1 + (shape.final_accuracy - 0.1) * progress, loss + 0.05));
    }
  }
  for (const auto& [name, what, from, to, target, type] :
       {std::tuple{"straggler", "pi1 computes 3 times slower", 20'000, 32'000, "pi1", "slow"},
        std::tuple{"bandwidth drop", "pi0 drops to 5 Mbit/s both ways", 45'000, 60'000, "pi0",
                   "link"}}) {
    if (from * ms < t)
      records.push_back(event(name, what, from * ms, from * ms, target, type, false));
    if (to * ms < t) records.push_back(event(name, what, to * ms, to * ms, target, type, true));
  }
  for (int n = 0; n < 4; ++n) {
    const int next = (n + 1) % 4;
    const std::int64_t sent = bytes / 4;
    if (shape.gradient_free && n < 3)
      records.push_back(traffic(n, next, "activation", shape.steps, sent));
    if (shape.gradient_free && n == 3)
      for (int to = 0; to < 3; ++to)
        records.push_back(traffic(3, to, "scalar", shape.steps, 16 * shape.steps));
    if (!shape.gradient_free)
      records.push_back(traffic(n, next, "gradient", 6 * shape.steps, sent));
    if (shape.strategy == "parameter_server" && n > 0)
      records.push_back(traffic(0, n, "parameter", shape.steps, sent));
    records.push_back(totals(n, t * 4 / (5 + n), shape.steps, 98'000, n == 2 ? 2'600 : 1'500,
                             n == 0 ? shape.steps * 256 : 0,
                             n == 0 && !shape.gradient_free ? shape.steps * 256 : 0));
  }
  records.push_back(ended(
      t, true, std::to_string(shape.steps) + (shape.gradient_free ? " evaluations" : " steps")));
  return records;
}

RunDescription describe(const Shape& shape) {
  RunDescription description;
  description.name = shape.name;
  description.strategy = shape.strategy;
  description.seed = 1;
  description.engine = "exact";
  description.cost = "profile";
  description.experiment =
      "orrery: 1\nname: quickstart\nseed: 1\ncluster:\n  cost: profile\n  nodes:\n"
      "    pi[0-1]: {device: pi4}\n    jetson: {device: jetson}\n    server: {device: server}\n"
      "timeline:\n  - straggler: {at: 20s, lasts: 12s, nodes: [pi1], slow: 3}\n";
  description.command_line = {"orrery", "run", "configs/quickstart.yaml"};
  description.versions = {{"orrery", "0.1.0"}, {"libtorch", "1.13.1"}, {"kernel", "6.1.0"}};
  description.host = {{"processor", "x86-64"}, {"cores", "2"}};
  for (std::size_t n = 0; n < boards.size(); ++n) description.speeds[boards[n]] = speeds[n];
  description.profile_hash = "9f86d081884c7d65";
  description.profile_spread = 1.04;
  description.host_seconds = 41.7;
  return description;
}

}  // namespace

std::string sample_report() {
  const std::vector<Shape> shapes{
      {"cao_sync", "nd_cao", true, 42 * ms, 2000, 0.725, 0.71},
      {"cao_async", "nd_cao", true, 27 * ms, 2000, 0.718, 0.74},
      {"sgd", "sgd_allreduce", false, 12 * ms, 5628, 0.858, 0.39},
      {"ps_async", "parameter_server", false, 14 * ms, 5628, 0.836, 0.46},
  };
  std::deque<RunDescription> descriptions;
  std::deque<RunLog> logs;
  std::vector<RunView> views;
  for (const Shape& shape : shapes) {
    descriptions.push_back(describe(shape));
    logs.push_back(make_log(make_run(shape)));
    views.push_back({&descriptions.back(), &logs.back()});
  }
  return report_html("quickstart", views);
}

std::string hostile_report() {
  const std::string evil =
      "</script><b id=\"pwned\">x</b><img src=x onerror=\"document.title='pwned'\">";
  RunDescription description = describe({evil, evil, false, 1, 1, 0, 0});
  description.experiment = evil;
  description.host = {{evil, evil}};
  const RunLog log = make_log(
      {started(evil, evil, {evil, evil + "2"}), check(evil + "->" + evil, "delay", 1, 1, nan, evil),
       check(evil + "->hub", evil, 1, 1, 1, evil), counters(5, evil + "->hub", 1, 2, 3),
       step(1, 0, 1, "step", nan), step(2, 0, 2, "step", 1), span(0, 9, 0, evil, evil),
       span(2, 9, 1, "compute", evil), event(evil, evil, 1, 2, evil, evil, false),
       evaluation(3, 1, nan, nan), evaluation(4, 2, 0.5, 1), traffic(0, 1, evil, 1, 5),
       node_state(5, 1, "lost", evil)});
  const RunView view{&description, &log};
  return report_html(evil, {&view, 1});
}

}  // namespace orrery::results::testing
