// Records made by hand, for tests.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "proto/record.pb.h"

namespace orrery::results::testing {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline wire::Record started(const std::string& run, const std::string& strategy,
                            const std::vector<std::string>& nodes, std::uint64_t seed = 1) {
  wire::Record record;
  auto* r = record.mutable_run_started();
  r->set_run(run);
  r->set_strategy(strategy);
  r->set_seed(seed);
  for (const std::string& node : nodes) r->add_nodes(node);
  return record;
}

inline wire::Record step(std::int64_t t, int node, std::int64_t number, const std::string& phase,
                         double loss, std::int64_t samples = 0,
                         const std::map<std::string, double>& extra = {}) {
  wire::Record record;
  auto* r = record.mutable_step();
  r->set_t(t);
  r->set_node(node);
  r->set_step(number);
  r->set_phase(phase);
  r->set_loss(loss);
  r->set_samples(samples);
  for (const auto& [name, value] : extra) (*r->mutable_extra())[name] = value;
  return record;
}

inline wire::Record span(std::int64_t begin, std::int64_t end, int node,
                         const std::string& category, const std::string& name) {
  wire::Record record;
  auto* r = record.mutable_span();
  r->set_begin(begin);
  r->set_end(end);
  r->set_node(node);
  r->set_category(category);
  r->set_name(name);
  return record;
}

inline wire::Record check(const std::string& link, const std::string& property, double asked,
                          double applied, double measured, const std::string& verdict) {
  wire::Record record;
  auto* r = record.mutable_link_check();
  r->set_link(link);
  r->set_property(property);
  r->set_asked(asked);
  r->set_applied(applied);
  r->set_measured(measured);
  r->set_verdict(verdict);
  return record;
}

inline wire::Record counters(std::int64_t t, const std::string& link, std::int64_t packets,
                             std::int64_t bytes, std::int64_t dropped) {
  wire::Record record;
  auto* r = record.mutable_link_counters();
  r->set_t(t);
  r->set_link(link);
  r->set_packets(packets);
  r->set_bytes(bytes);
  r->set_dropped(dropped);
  return record;
}

inline wire::Record lateness(const std::string& link, std::int64_t p99_ns) {
  wire::Record record;
  auto* r = record.mutable_link_lateness();
  r->set_link(link);
  r->set_releases(1000);
  r->set_p50_ns(p99_ns / 2);
  r->set_p99_ns(p99_ns);
  r->set_largest_ns(2 * p99_ns);
  return record;
}

inline wire::Record event(const std::string& name, const std::string& what, std::int64_t planned,
                          std::int64_t actual, const std::string& target, const std::string& type,
                          bool is_end) {
  wire::Record record;
  auto* r = record.mutable_timeline_event();
  r->set_name(name);
  r->set_what(what);
  r->set_planned(planned);
  r->set_actual(actual);
  r->set_target(target);
  r->set_type(type);
  r->set_is_end(is_end);
  return record;
}

inline wire::Record traffic(int node, int peer, const std::string& kind, std::int64_t messages,
                            std::int64_t bytes) {
  wire::Record record;
  auto* r = record.mutable_traffic();
  r->set_node(node);
  r->set_peer(peer);
  r->set_kind(kind);
  r->set_messages(messages);
  r->set_bytes(bytes);
  return record;
}

inline wire::Record totals(int node, std::int64_t busy_ns, std::int64_t kernels,
                           std::uint64_t charged, std::uint64_t uncharged, std::int64_t forward = 0,
                           std::int64_t backward = 0, std::int64_t interpolated = 0,
                           std::int64_t overruns = 0, std::int64_t overrun_ns = 0) {
  wire::Record record;
  auto* r = record.mutable_node_totals();
  r->set_node(node);
  r->set_busy_ns(busy_ns);
  r->set_kernels(kernels);
  r->set_charged_cycles(charged);
  r->set_uncharged_cycles(uncharged);
  r->set_samples_forward(forward);
  r->set_samples_backward(backward);
  r->set_interpolated(interpolated);
  r->set_overruns(overruns);
  r->set_overrun_ns(overrun_ns);
  return record;
}

inline wire::Record evaluation(std::int64_t t, std::int64_t number, double accuracy, double loss) {
  wire::Record record;
  auto* r = record.mutable_evaluation();
  r->set_t(t);
  r->set_step(number);
  r->set_accuracy(accuracy);
  r->set_loss(loss);
  return record;
}

inline wire::Record node_state(std::int64_t t, int node, const std::string& state,
                               const std::string& reason = "") {
  wire::Record record;
  auto* r = record.mutable_node_state();
  r->set_t(t);
  r->set_node(node);
  r->set_state(state);
  r->set_reason(reason);
  return record;
}

inline wire::Record ended(std::int64_t t, bool ok = true, const std::string& reason = "steps") {
  wire::Record record;
  auto* r = record.mutable_run_ended();
  r->set_t(t);
  r->set_ok(ok);
  r->set_reason(reason);
  return record;
}

/// A small whole run: two nodes, a star, an event, three steps, evaluations.
inline std::vector<wire::Record> small_run() {
  return {
      started("sgd", "sgd_allreduce", {"a", "b"}, 7),
      check("a->switch", "delay", 0.02, 0.02, 0.0200031, "ok"),
      check("a->switch", "rate", 1e8, 1e8, nan, "not measured"),
      check("switch->a", "delay", 0.01, 0.01, 0.012, "off by 20 %"),
      node_state(0, 0, "running"),
      node_state(0, 1, "running"),
      span(0, 1'000'000, 0, "compute", "forward:64"),
      span(0, 2'000'000, 1, "compute", "forward:64"),
      span(1'000'000, 2'500'000, 0, "wait", "gradient from b"),
      step(2'500'000, 0, 1, "step", 2.25, 64),
      step(2'500'001, 1, 1, "step", 2.75, 64, {{"lr", 0.1}}),
      event("slow b", "b computes 2 times slower", 3'000'000, 3'000'000, "b", "slow", false),
      step(5'000'000, 0, 2, "step", nan, 64),
      step(5'000'000, 1, 2, "step", 1.5, 64, {{"lr", 0.05}}),
      event("slow b", "b computes 2 times slower", 4'000'000, 4'000'000, "b", "slow", true),
      counters(6'000'000, "a->switch", 10, 15'140, 1),
      counters(6'000'000, "switch->a", 12, 18'000, 0),
      traffic(0, 1, "gradient", 2, 8192),
      traffic(1, 0, "gradient", 2, 8192),
      traffic(1, 0, "scalar", 4, 32),
      totals(0, 1'000'000, 4, 990, 10, 128, 128),
      totals(1, 2'000'000, 4, 990, 10, 128, 128, 0, 2, 1'000),
      lateness("a->switch", 40'000),
      ended(6'000'000, true, "2 steps"),
      evaluation(0, 0, 0.1, 2.4),
      evaluation(6'000'000, 2, 0.625, 1.25),
  };
}

}  // namespace orrery::results::testing
