// Records the packets of the node that this process is on.
#pragma once

#include <optional>
#include <string>

#include "base/units.hh"

namespace orrery::net {

/// Writes what the node sends and receives, on all of its interfaces but the loopback's, to `path`
/// as pcapng ("-": standard output) until `lasts` has passed, or SIGINT or SIGTERM comes. Each
/// packet is written at once. Returns how many there were. Throws SystemError or MachineError.
std::int64_t capture(const std::string& path, std::optional<Duration> lasts);

}  // namespace orrery::net
