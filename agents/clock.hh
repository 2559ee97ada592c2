// Emulated time. No other code in agents/ reads a clock or sleeps.
#pragma once

#include "base/units.hh"

namespace orrery {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since the barrier at which the run started.
  virtual Instant now() = 0;
  /// Returns at `t` or, if it has passed, at once.
  virtual void sleep_until(Instant t) = 0;
};

/// The kernel's monotonic clock, counted from `epoch` (CLOCK_MONOTONIC, ns). In the time-travel
/// kernel it is emulated time; on a host it is wall time.
class MonotonicClock : public Clock {
 public:
  explicit MonotonicClock(std::int64_t epoch_ns = 0) : epoch_ns_(epoch_ns) {}
  void set_epoch(std::int64_t epoch_ns) { epoch_ns_ = epoch_ns; }
  std::int64_t epoch_ns() const { return epoch_ns_; }
  Instant now() override;
  void sleep_until(Instant t) override;

 private:
  std::int64_t epoch_ns_;
};

/// The same where it is wall time: a sleeping thread wakes late, by some 0.1 ms, so this one wakes
/// early and looks at the clock until it is time.
class WallClock final : public MonotonicClock {
 public:
  void sleep_until(Instant t) override;

 private:
  static constexpr Duration spin = Duration::microseconds(150);
};

}  // namespace orrery
