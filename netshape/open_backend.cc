#include "netshape/open_backend.hh"

#include "base/error.hh"
#include "netshape/capabilities.hh"
#include "netshape/fabric/fabric_backend.hh"

namespace orrery::netshape {

std::string to_string(BackendKind kind) {
  return kind == BackendKind::kernel ? "kernel" : "fabric";
}

BackendKind choose_backend(const std::string& wish) {
  if (wish != "auto" && wish != "kernel" && wish != "fabric")
    throw ValueError("'" + wish + "' is no backend; write kernel, fabric or auto");
  const Capabilities host = probe();
  if (wish != "fabric" && host.kernel_backend()) return BackendKind::kernel;
  if (wish != "kernel" && host.fabric_backend()) return BackendKind::fabric;
  std::string text = "this host cannot shape a network";
  if (wish != "fabric") text += "; with its kernel: " + host.why_no_kernel_backend();
  if (wish != "kernel") text += "; with the fabric: " + host.why_no_fabric_backend();
  throw MachineError(text + "; the exact engine needs none of it");
}

std::unique_ptr<Backend> open_backend(BackendKind kind, NowFunction now) {
  if (kind == BackendKind::kernel) return std::make_unique<KernelBackend>(std::move(now));
  return std::make_unique<FabricBackend>();
}

}  // namespace orrery::netshape
