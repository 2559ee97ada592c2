#include "emulator/config/device_profiles.hh"

#include <array>

namespace orrery::config {
namespace {

constexpr double giga = 1e9;
constexpr FlopRate gflops(double value) { return {value * giga}; }
constexpr ByteRate gbytes(double value) { return {value * giga}; }
constexpr Bytes gib(std::int64_t value) { return Bytes::mib(value * 1024); }
constexpr Duration us(std::int64_t value) { return Duration::microseconds(value); }

// Compute: High-Performance Linpack is a double-precision matrix product in all but name; single
// precision has twice the lanes, so a device's figure here is twice its HPL result, all cores used.
// Memory: bytes read plus bytes written, as STREAM counts a copy; tinymembench counts a byte copied
// once, so its figures are doubled. Message overhead: our own estimates, scaled by single-thread
// speed from about 20 us a message for gRPC on a server core; no published figure is known to us.
// HPL results: github.com/geerlingguy/top500-benchmark, README and the issues named.
constexpr std::array<DeviceProfile, 8> table{{
    {"raspberry-pi-4", "Raspberry Pi 4 B, four Cortex-A72 at 1.8 GHz, 4 GiB", gflops(23.8),
     gbytes(5.5), gib(4), us(100),
     "HPL 11.889 Gflop/s (top500-benchmark #13); STREAM copy 5527 MB/s "
     "(sci-pi.org.uk/bench/stream.html)"},
    {"raspberry-pi-5", "Raspberry Pi 5, four Cortex-A76 at 2.4 GHz, 8 GiB", gflops(60.5),
     gbytes(11.1), gib(8), us(45),
     "HPL 30.249 Gflop/s (top500-benchmark #18); tinymembench copy 5557 MB/s "
     "(raspberrypi/firmware #1876)"},
    {"jetson-nano", "Jetson Nano, its four Cortex-A57 at 1.43 GHz (not the GPU), 4 GiB",
     gflops(18.9), gbytes(5.9), gib(4), us(120),
     "compute: the Raspberry Pi 4's HPL result at the ratio of the clocks, the cores having the "
     "same "
     "vector width; memcpy 2.97 GB/s (ggml-org/whisper.cpp #89)"},
    {"orin-nano", "Jetson Orin Nano, its six Cortex-A78AE at 1.51 GHz (not the GPU), 8 GiB",
     gflops(57.1), gbytes(13.5), gib(8), us(60),
     "compute: the Raspberry Pi 5's HPL result at the ratio of cores times clock, the cores having "
     "the same vector width; memcpy 6730 MB/s (ThomasKaiser/sbc-bench #65)"},
    {"laptop", "MacBook Air with M2, 8 GiB", gflops(209.4), gbytes(100), gib(8), us(12),
     "HPL 104.68 Gflop/s in a container (top500-benchmark README); 100 GB/s by Apple's "
     "specification"},
    {"server-core", "one core of a fully loaded Ampere Altra Max M128-28, its share of memory",
     gflops(19.8), gbytes(1.6), gib(4), us(20),
     "HPL 1265.5 Gflop/s on 128 cores (top500-benchmark #17); eight channels of DDR4-3200, 204.8 "
     "GB/s by specification, divided by 128"},
    {"server", "Ampere Altra Max M128-28, all 128 cores, 512 GiB", gflops(2531), gbytes(204.8),
     gib(512), us(20),
     "HPL 1265.5 Gflop/s (top500-benchmark #17); eight channels of DDR4-3200 by specification"},
    {"ideal", "everything at no cost: what is left is the network", FlopRate{}, ByteRate{},
     gib(1024), us(0), "by definition; for tests of the network's physics"},
}};

}  // namespace

std::span<const DeviceProfile> device_profiles() { return table; }

const DeviceProfile* find_device_profile(std::string_view name) {
  for (const DeviceProfile& profile : table)
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace orrery::config
