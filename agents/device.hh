// A device makes a real kernel take emulated time.
//
// The kernel runs for real, at once: its numbers are the training. How long it *takes* is
// base / speed, stretched by the node's slow-downs and pauses, and a node's kernels never overlap.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/clock.hh"
#include "agents/kernel.hh"

namespace orrery {

/// How long a kernel takes on a device of speed 1.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Duration base(const KernelSpec& kernel) const = 0;
  /// How many answers were estimated from other kernels' times.
  virtual std::int64_t interpolated() const { return 0; }
};

/// Roofline: max(flops / rate, bytes / bandwidth) + a fixed launch overhead; messages pay
/// `message_overhead` and their bytes twice through memory (read, written).
/// Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
struct RooflineCost : CostModel {
  double flops_per_second = 0;  ///< 0: free
  double bytes_per_second = 0;  ///< 0: free
  Duration kernel_overhead;
  Duration message_overhead;
  Duration base(const KernelSpec& kernel) const override;
};

/// Times measured on a host by `orrery profile`: kernel → median. A kernel that was not profiled is
/// interpolated between the counts of the same operation on the same layers that were (on a line
/// through the nearest two outside them; proportionally where there is only one); failing those it
/// is scaled from the nearest kernel of the same operation by its flops, or bytes. Each such use is
/// counted.
class ProfileCost : public CostModel {
 public:
  struct Entry {
    KernelSpec kernel;
    Duration median;
    Duration p95;
  };
  explicit ProfileCost(std::vector<Entry> entries);
  /// Throws Error if nothing of that operation was ever profiled.
  Duration base(const KernelSpec& kernel) const override;
  std::int64_t interpolated() const override { return interpolated_; }

 private:
  /// Everything of a kernel but its count: operation, layers, extra.
  using Family = std::array<std::int64_t, 4>;
  Duration estimate(const KernelSpec& kernel) const;

  std::map<Family, std::map<std::int64_t, Entry>> families_;  ///< then by count
  mutable std::int64_t interpolated_ = 0;
};

/// The speed of a node over time: 1 normally, 1/k while a straggler of factor k, 0 while paused.
class SpeedSchedule {
 public:
  struct Step {
    Instant from;
    double factor;  ///< of the device's own speed, ≥ 0
  };
  SpeedSchedule() = default;
  /// Steps in ascending order of time; before the first the factor is 1. Throws std::logic_error.
  explicit SpeedSchedule(std::vector<Step> steps);
  /// When work that takes `work` at factor 1 ends if begun at `begin`: the exact integral, to the
  /// nearest nanosecond. Work of no duration waits, too, until the factor is above 0. If the
  /// schedule stays 0 for ever: the last representable instant.
  Instant finish(Instant begin, Duration work) const;

 private:
  std::vector<Step> steps_;
};

/// How a kernel runs where emulated time is the host's own, and so may be too slow.
struct HostPace {
  /// Runs a kernel's work by itself, undisturbed by other nodes' kernels; empty: just calls it.
  std::function<void(const std::function<void()>&)> run;
  /// What the host itself takes to handle a message, which has passed already when it is charged.
  /// Null: not known.
  std::shared_ptr<const CostModel> messages;
};

class Device {
 public:
  struct Handle {
    Instant begin;
    Instant end;               ///< unless messages interrupt it: see end_of()
    std::uint64_t number = 0;  ///< of a kernel that start() began
  };
  struct Totals {
    Duration busy;  ///< emulated
    std::int64_t kernels = 0;
    std::uint64_t charged_cycles = 0;  ///< host time-stamp counter inside kernels
    /// With HostPace only: kernels that the host took longer for than the device would have, and by
    /// how much in all.
    std::int64_t overruns = 0;
    Duration overrun_time;
  };

  Device(Clock& clock, std::shared_ptr<const CostModel> cost, double speed,
         SpeedSchedule schedule = {}, std::optional<HostPace> pace = {});

  /// Runs `work` for real now; in emulated time it begins when the device is free and lasts as long
  /// as the cost model says. Returns without waiting, so that messages overlap.
  Handle start(const KernelSpec& kernel, const std::function<void()>& work);
  /// Handles a message: its (de)serialisation, which the transport itself has done or will do. As
  /// on a real processor that does not wait for a kernel under way: it takes the device at once,
  /// and what was started ends later by as much work. The node is at its end afterwards, as by
  /// run().
  Handle interrupt(const KernelSpec& message);
  /// When a started kernel ends, by what is known now.
  Instant end_of(const Handle& handle) const;
  /// Sleeps until the kernel's end.
  void wait(const Handle& handle);
  /// Runs a kernel, and counts the node as being at its end without sleeping until then. Before
  /// anything that another node could notice, settle().
  Handle run(const KernelSpec& kernel, const std::function<void()>& work);
  /// Sleeps until the node's own time.
  void settle();

  /// Where the node is in emulated time: the end of what it ran, or its last reading of the clock.
  /// Between the two only computing happened, and that takes no time but what was charged.
  Instant time() const { return time_; }
  /// Reads the clock, after something that took emulated time (a wait for a message).
  Instant observe();

  const Totals& totals() const { return totals_; }
  std::int64_t interpolated() const { return cost_->interpolated(); }
  Clock& clock() { return clock_; }

 private:
  Duration duration(const KernelSpec& kernel) const;
  Handle occupy(const KernelSpec& kernel, const std::function<void()>& work);
  void work_now(const std::function<void()>& work);
  /// How far the clock is past `t`; nothing if it is not.
  Duration behind(Instant t);

  Clock& clock_;
  std::shared_ptr<const CostModel> cost_;
  double speed_;
  SpeedSchedule schedule_;
  std::optional<HostPace> pace_;
  Instant time_{};                              ///< the node's own
  Instant slept_to_{};                          ///< the clock has reached this for sure
  Instant free_at_{};                           ///< the device's
  std::map<std::uint64_t, Instant> under_way_;  ///< ends of started kernels, by number
  std::uint64_t started_ = 0;
  Totals totals_;
};

/// The host's time-stamp counter; used only to tell which share of real work was charged.
std::uint64_t host_cycles();

}  // namespace orrery
