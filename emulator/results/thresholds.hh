// Where a run stops being faithful: the only place that holds these numbers. docs/results.md quotes
// them, and a test compares.
#pragma once

#include "base/units.hh"

namespace orrery::results::thresholds {

/// Host work of nodes outside charged kernels, as a share of all of it. What is not charged takes
/// no emulated time, so a strategy that computes there looks faster than it is.
inline constexpr double uncharged_ratio = 0.05;

/// p95/p50 of the profile's repetitions of a kernel, the largest of all kernels. A profile measured
/// on a disturbed host makes each emulated duration doubtful by as much. Quiet hosts give 1.03.
inline constexpr double profile_spread = 1.2;

/// Share of kernels whose duration was scaled from another size because the profile lacks them.
inline constexpr double interpolated_share = 0.01;

/// The line time of the longest burst that crosses a link as one super-packet. Shorter ones do not
/// change what a TCP flow sees.
inline constexpr Duration burst = Duration::microseconds(50);

/// Host time for which emulated time stood still, as a share of the watchdog's limit: above it, the
/// run nearly ended for a reason that lies in the host.
inline constexpr double watchdog_share = 0.5;

/// Live: by how much the host took longer for a node's kernels than its device would have, as a
/// share of the run's time, on the node where that is most. Above the first the run is degraded,
/// above the second it is another cluster than the one described.
inline constexpr double overrun_share = 0.01;
inline constexpr double overrun_share_invalid = 0.10;

/// Live: how late the 99th percentile of packets left the link that it was worst for.
inline constexpr Duration release_lateness = Duration::microseconds(500);

/// When an event of the timeline took effect, minus when it was planned.
inline constexpr Duration timeline_lateness = Duration::milliseconds(1);

}  // namespace orrery::results::thresholds
