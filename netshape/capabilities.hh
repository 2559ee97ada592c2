// What this kernel, for this user, can do: tried in a network namespace that is thrown away.
#pragma once

#include <string>
#include <vector>

namespace orrery::netshape {

struct Capability {
  std::string name;  ///< "network namespaces", "netem", …
  bool present = false;
  std::string lack;      ///< what the kernel said, or which module gives it; empty if present
  std::string degrades;  ///< what cannot be done without it, and what is done instead
};

struct Capabilities {
  std::vector<Capability> all;  ///< in the order in which they were tried

  bool has(const std::string& name) const;
  /// Whether KernelBackend can build a network here; FabricBackend.
  bool kernel_backend() const;
  bool fabric_backend() const;
  /// What the first of a backend's needs that is missing lacks; empty if none is.
  std::string why_no_kernel_backend() const;
  std::string why_no_fabric_backend() const;
};

/// Tries all in a child process, so that this one's namespaces stay as they are. Takes some
/// milliseconds.
Capabilities probe();

std::string to_text(const Capabilities& capabilities);

}  // namespace orrery::netshape
