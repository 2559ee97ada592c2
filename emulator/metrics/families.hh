// The Prometheus families of the table: one each, made from it.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/metrics/metrics.hh"

namespace orrery::metrics {

/// `labels` are the values of the metric's labels in the order of the table, `run` apart; another
/// number of them throws std::logic_error. Thread-safe, for prometheus-cpp's families are.
class Families {
 public:
  Families();
  void set(Id id, const std::string& run, const std::vector<std::string>& labels, double value);
  void add(Id id, const std::string& run, const std::vector<std::string>& labels, double by);
  /// Increments a counter up to `to`; never lowers it.
  void raise(Id id, const std::string& run, const std::vector<std::string>& labels, double to);
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  std::shared_ptr<prometheus::Registry> registry_;
  std::map<Id, prometheus::Family<prometheus::Gauge>*> gauges_;
  std::map<Id, prometheus::Family<prometheus::Counter>*> counters_;
};

}  // namespace orrery::metrics
