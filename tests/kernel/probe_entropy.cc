// Every way to ask this kernel for chance.

#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "probe.hh"

namespace orrery::probe {
namespace {

std::string hex(const void* data, std::size_t size) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<const unsigned char*>(data)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

const Registration entropy{
    "entropy", [] {
      std::array<char, 16> bytes{};
      report("at_random", hex(reinterpret_cast<const void*>(getauxval(AT_RANDOM)), 16));
      check(getrandom(bytes.data(), bytes.size(), 0), "getrandom");
      report("getrandom", hex(bytes.data(), bytes.size()));
      for (const char* device : {"/dev/urandom", "/dev/random"}) {
        std::ifstream(device, std::ios::binary).read(bytes.data(), bytes.size());
        report(device, hex(bytes.data(), bytes.size()));
      }
      report("uuid", slurp("/proc/sys/kernel/random/uuid"));
      report("boot_id", slurp("/proc/sys/kernel/random/boot_id"));
      // Children and time passing feed the pool too: half an hour later, after reseeding, again.
      for (int i = 0; i < 20; ++i) run("true");
      sleep(1800);
      check(getrandom(bytes.data(), bytes.size(), 0), "getrandom");
      report("later", hex(bytes.data(), bytes.size()));
    }};

}  // namespace
}  // namespace orrery::probe
