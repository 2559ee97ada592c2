// Named devices: what a board or a core sustains, with the source of each figure.
#pragma once

#include <span>
#include <string_view>

#include "emulator/config/quantities.hh"

namespace orrery::config {

struct DeviceProfile {
  std::string_view name;
  std::string_view description;
  FlopRate flops;             ///< sustained, float32 matrix product
  ByteRate memory_bandwidth;  ///< sustained copy
  Bytes memory;
  Duration message_overhead;  ///< CPU time to send or to receive one message
  std::string_view source;
};

/// All of them, in a fixed order.
std::span<const DeviceProfile> device_profiles();
/// nullptr for an unknown name.
const DeviceProfile* find_device_profile(std::string_view name);

}  // namespace orrery::config
