// Measures the links of a running backend with packets of our own, and says how far each is from
// what was asked. What was not measured is never called good.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netshape/backend.hh"

namespace orrery::netshape {

struct LinkVerdict {
  std::string link;
  Duration asked_delay;                    ///< mean, without serialisation
  std::optional<Duration> measured_delay;  ///< serialisation taken off; median
  std::optional<BitRate> asked_rate;       ///< in the layer that the link's spec names
  std::optional<BitRate> measured_rate;    ///< in the same layer
  double loss_asked = 0;
  std::string delay_verdict;  ///< "ok", "off by …" or "not measured: …"
  std::string rate_verdict;   ///< likewise; "none asked" without a rate
  bool ok() const { return delay_verdict == "ok" && (rate_verdict == "ok" || !asked_rate); }
};

struct VerifyOptions {
  double rate_tolerance = 0.01;                           ///< relative
  Duration delay_tolerance = Duration::microseconds(50);  ///< absolute, added to the relative one
  double delay_relative = 0.005;
  int probes = 8;  ///< small packets for the delay
  int train = 40;  ///< full packets for the rate
};

/// Needs an idle network. Enters the nodes' namespaces with threads' own setns(): the caller's
/// stays.
std::vector<LinkVerdict> verify(const Backend& backend, const VerifyOptions& options = {});

std::string to_text(const std::vector<LinkVerdict>& verdicts);

}  // namespace orrery::netshape
