// The backend for this host.
#pragma once

#include <memory>
#include <string>

#include "netshape/backend.hh"
#include "netshape/kernel_backend.hh"

namespace orrery::netshape {

enum class BackendKind { kernel, fabric };
std::string to_string(BackendKind kind);

/// "kernel", "fabric", or "auto": the kernel's where it has netem, else the fabric. ValueError for
/// another word; MachineError, with what is lacking, where the host cannot.
BackendKind choose_backend(const std::string& wish);

/// `now` is used by the kernel backend.
std::unique_ptr<Backend> open_backend(BackendKind kind, NowFunction now);

}  // namespace orrery::netshape
