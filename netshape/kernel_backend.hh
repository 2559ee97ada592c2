// The backend that uses the running kernel: a network namespace a node and a switch, veth pairs,
// and netem, all through netlink. No tool is run and no name is left behind: the namespaces are
// held by descriptors, so the kernel frees all of it when this process ends, however it ends.
#pragma once

#include <functional>
#include <memory>

#include "netshape/backend.hh"

namespace orrery::netshape {

/// Emulated time now; netshape reads no clock of its own while shaping.
using NowFunction = std::function<Instant()>;

class KernelBackend final : public Backend {
 public:
  explicit KernelBackend(NowFunction now);
  ~KernelBackend() override;

  void apply(const Plan& plan) override;
  ChangeTimes change(std::span<const LinkChange> changes, Instant planned) override;
  std::vector<LinkCounters> counters() override;
  std::vector<Applied> applied() const override;
  const Plan& current() const override;
  void remove() override;
  int node_namespace(const std::string& node) const override;

 private:
  class Network;
  NowFunction now_;
  std::unique_ptr<Network> network_;
};

}  // namespace orrery::netshape
