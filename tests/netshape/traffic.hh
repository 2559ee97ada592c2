// Plain sockets at two ends of a network that a test has built, and what came of using them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "netshape/backend.hh"

namespace orrery::netshape::test {

std::int64_t now_ns();
void sleep_ns(std::int64_t ns);

struct Arrival {
  std::uint32_t number = 0;
  std::int64_t sent_ns = 0;
  std::int64_t ns = 0;
  std::int64_t one_way() const { return ns - sent_ns; }
};

/// A UDP sender at one vertex and a receiver at another, used by one thread.
class Udp {
 public:
  Udp(const Backend& backend, const std::string& from, const std::string& to);
  /// `payload` bytes after the IP and UDP headers; at least 16.
  void send(std::uint32_t number, std::int64_t payload);
  std::optional<Arrival> receive(std::int64_t patience_ns);
  /// The next one; throws when none comes within ten seconds.
  Arrival arrival();
  /// Until nothing has come for `patience_ns`.
  std::vector<Arrival> receive_all(std::int64_t patience_ns);

 private:
  FileDescriptor from_;
  FileDescriptor to_;
};

struct Sample {
  std::int64_t ns = 0;     ///< since the sender's first byte was handed over
  std::int64_t bytes = 0;  ///< received so far
};

/// One TCP connection of its own sends `bytes`, or for `seconds`, whichever ends first. Times are
/// measured by the receiver. The two ends are processes of their own.
std::vector<Sample> tcp(const Backend& backend, const std::string& from, const std::string& to,
                        std::int64_t bytes, double seconds);

}  // namespace orrery::netshape::test
