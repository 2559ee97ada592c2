// Measures the links of a running backend with packets of our own, and says how far each is from
// what was asked. What was not measured is never called good. Where chance has a part in a figure,
// "ok" is what comes of 999 in 1000 links that are as asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netshape/backend.hh"

namespace orrery::netshape {

/// One property of a link. Seconds, bits a second in the layer that the link's spec names, or a
/// share of packets.
struct PropertyCheck {
  double asked = 0;
  std::optional<double> measured;
  std::string verdict = "none asked";  ///< "ok", "off by …", "not measured: …"
  bool ok() const { return verdict == "ok" || verdict == "none asked"; }
};

struct LinkVerdict {
  std::string link;
  PropertyCheck delay;   ///< mean (median without jitter), serialisation taken off
  PropertyCheck jitter;  ///< standard deviation; the distribution counts for the verdict, too
  PropertyCheck rate;
  PropertyCheck loss;  ///< with `corrupt`: damaged packets are lost at the receiver
  PropertyCheck duplicate;
  PropertyCheck reorder;  ///< packets that skipped the delay
  bool ok() const;
};

struct VerifyOptions {
  double rate_tolerance = 0.01;                           ///< relative
  Duration delay_tolerance = Duration::microseconds(50);  ///< absolute, added to the relative one
  double delay_relative = 0.005;
  double jitter_tolerance = 0.03;  ///< relative, added to four standard errors
  int probes = 8;                  ///< small packets for the delay
  int chance_probes = 400;         ///< the same where chance has a part in it
  int train = 40;                  ///< full packets for the rate
  int loss_packets = 20'000;       ///< at most; fewer where 400 losses come sooner
  /// A packet has arrived when the receiver's kernel had it, and not when this program woke for it:
  /// where time passes meanwhile.
  bool kernel_stamps = false;
};

/// For wall time on a host that others use, too: what is measured takes that time, and wakes late.
VerifyOptions wall_time_options();

/// Needs an idle network. Enters the nodes' namespaces with threads' own setns(): the caller's
/// stays.
std::vector<LinkVerdict> verify(const Backend& backend, const VerifyOptions& options = {});

std::string to_text(const std::vector<LinkVerdict>& verdicts);

}  // namespace orrery::netshape
