// The backend for hosts whose kernel cannot shape: TAP devices joined by a switch in this process,
// which does to each packet what the plan says. Same plan, same operations, same measurements as
// KernelBackend.
#pragma once

#include <memory>

#include "netshape/backend.hh"
#include "netshape/fabric/fabric_loop.hh"

namespace orrery::netshape {

class FabricBackend final : public Backend {
 public:
  explicit FabricBackend(FabricOptions options = {});
  ~FabricBackend() override;

  /// ChangeTimes::actual is CLOCK_MONOTONIC's, ns.
  void apply(const Plan& plan) override;
  ChangeTimes change(std::span<const LinkChange> changes, Instant planned) override;
  std::vector<LinkCounters> counters() override;
  std::vector<ReleaseLateness> lateness() override;
  bool shapes_segments() const override { return true; }
  std::vector<Applied> applied() const override;
  const Plan& current() const override;
  void remove() override;
  int node_namespace(const std::string& node) const override;

  /// Whether the scheduler favours it as it asked; false before apply().
  bool favoured() const;

 private:
  struct Network;
  FabricOptions options_;
  std::unique_ptr<Network> network_;
};

}  // namespace orrery::netshape
