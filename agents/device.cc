#include "agents/device.hh"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/error.hh"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace orrery {
namespace {

constexpr Instant never{std::numeric_limits<std::int64_t>::max()};

/// Counts a stretch of real work as charged, also when the work throws.
class CycleCounter {
 public:
  explicit CycleCounter(std::uint64_t& total) : total_(total), begin_(host_cycles()) {}
  CycleCounter(const CycleCounter&) = delete;
  CycleCounter& operator=(const CycleCounter&) = delete;
  ~CycleCounter() { total_ += host_cycles() - begin_; }

 private:
  std::uint64_t& total_;
  std::uint64_t begin_;
};

/// How much larger `kernel` is than `known`, by the figure that decides its time.
double size_ratio(const KernelSpec& kernel, const KernelSpec& known) {
  if (kernel.flops > 0 && known.flops > 0) return kernel.flops / known.flops;
  if (kernel.bytes > 0 && known.bytes > 0) return kernel.bytes / known.bytes;
  return static_cast<double>(kernel.count) /
         static_cast<double>(std::max<std::int64_t>(1, known.count));
}

}  // namespace

std::uint64_t host_cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
#endif
}

Duration RooflineCost::base(const KernelSpec& kernel) const {
  const double compute = flops_per_second > 0 ? kernel.flops / flops_per_second : 0;
  const double memory = bytes_per_second > 0 ? kernel.bytes / bytes_per_second : 0;
  const Duration overhead = kernel.op == KernelOp::message ? message_overhead : kernel_overhead;
  return overhead + Duration::seconds(std::max(compute, memory));
}

ProfileCost::ProfileCost(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    const KernelSpec& kernel = entry.kernel;
    const Family family{static_cast<std::int64_t>(kernel.op), kernel.first, kernel.last,
                        kernel.extra};
    families_[family].insert_or_assign(kernel.count, std::move(entry));
  }
}

Duration ProfileCost::base(const KernelSpec& kernel) const {
  const auto family = families_.find(
      {static_cast<std::int64_t>(kernel.op), kernel.first, kernel.last, kernel.extra});
  if (family != families_.end()) {
    const auto exact = family->second.find(kernel.count);
    if (exact != family->second.end()) return exact->second.median;
  }
  ++interpolated_;
  return estimate(kernel);
}

Duration ProfileCost::estimate(const KernelSpec& kernel) const {
  const std::int64_t op = static_cast<std::int64_t>(kernel.op);
  const auto same = families_.find({op, kernel.first, kernel.last, kernel.extra});
  if (same != families_.end() && same->second.size() > 1) {
    // A line through two neighbours keeps a fixed cost fixed: a message of 16 bytes is not a
    // 65536th of one of 1 MiB, nor the reverse.
    const std::map<std::int64_t, Entry>& known = same->second;
    auto high = known.upper_bound(kernel.count);
    if (high == known.begin()) ++high;
    if (high == known.end()) --high;
    const auto low = std::prev(high);
    const double low_time = static_cast<double>(low->second.median.ns);
    const double slope = std::max(0.0, static_cast<double>(high->second.median.ns) - low_time) /
                         static_cast<double>(high->first - low->first);
    const double time = low_time + slope * static_cast<double>(kernel.count - low->first);
    return {std::llround(std::max(0.0, time))};
  }

  // Otherwise the nearest kernel of this operation, on whatever layers.
  const Entry* nearest = nullptr;
  double nearest_distance = std::numeric_limits<double>::infinity();
  for (auto family = families_.lower_bound({op, std::numeric_limits<std::int64_t>::min(), 0, 0});
       family != families_.end() && family->first[0] == op; ++family) {
    if (same != families_.end() && family != same) continue;
    for (const auto& [count, entry] : family->second) {
      const double distance = std::abs(std::log(size_ratio(kernel, entry.kernel)));
      if (nearest == nullptr || distance < nearest_distance) {
        nearest = &entry;
        nearest_distance = distance;
      }
    }
  }
  if (nearest == nullptr) {
    throw Error("the profile has no kernel like \"" + kernel.key() + "\"; profile this placement");
  }
  return nearest->median * size_ratio(kernel, nearest->kernel);
}

SpeedSchedule::SpeedSchedule(std::vector<Step> steps) : steps_(std::move(steps)) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!(steps_[i].factor >= 0) || std::isinf(steps_[i].factor)) {
      throw std::logic_error("a speed factor is a number ≥ 0");
    }
    if (i > 0 && steps_[i].from < steps_[i - 1].from) {
      throw std::logic_error("the steps of a speed schedule ascend in time");
    }
  }
}

Instant SpeedSchedule::finish(Instant begin, Duration work) const {
  // The last step that begins at or before `begin` holds; of steps at one instant the last.
  auto next = std::upper_bound(steps_.begin(), steps_.end(), begin,
                               [](Instant t, const Step& step) { return t < step.from; });
  double factor = next == steps_.begin() ? 1.0 : std::prev(next)->factor;
  double remaining = static_cast<double>(work.ns);
  Instant t = begin;
  for (;;) {
    const bool last = next == steps_.end();
    if (factor > 0) {
      const double needed = remaining / factor;
      const double available =
          last ? std::numeric_limits<double>::infinity() : static_cast<double>((next->from - t).ns);
      if (needed <= available) {
        if (needed >= static_cast<double>(never.ns - std::max<std::int64_t>(t.ns, 0))) return never;
        return {t.ns + std::llround(needed)};
      }
      remaining -= available * factor;
    }
    if (last) return never;
    t = next->from;
    factor = next->factor;
    ++next;
  }
}

Device::Device(Clock& clock, std::shared_ptr<const CostModel> cost, double speed,
               SpeedSchedule schedule, std::optional<HostPace> pace)
    : clock_(clock),
      cost_(std::move(cost)),
      speed_(speed),
      schedule_(std::move(schedule)),
      pace_(std::move(pace)) {
  if (!(speed > 0)) throw std::logic_error("the speed of a device is above 0");
}

Duration Device::duration(const KernelSpec& kernel) const {
  const Duration base = cost_->base(kernel);
  const Duration whole = speed_ == 1 ? base : base * (1 / speed_);
  if (kernel.op != KernelOp::message || !pace_ || !pace_->messages) return whole;
  return std::max(Duration{}, whole - pace_->messages->base(kernel));
}

Duration Device::behind(Instant t) { return std::max(Duration{}, clock_.now() - t); }

void Device::work_now(const std::function<void()>& work) {
  const CycleCounter counter(totals_.charged_cycles);
  if (pace_ && pace_->run)
    pace_->run(work);
  else
    work();
}

Device::Handle Device::occupy(const KernelSpec& kernel, const std::function<void()>& work) {
  const Instant begin = std::max(time_, free_at_);
  const Duration lag = pace_ && work ? behind(begin) : Duration{};
  if (work) work_now(work);
  const Handle handle{begin, schedule_.finish(begin, duration(kernel))};
  if (pace_ && work) {
    // Lag that it began with is an earlier kernel's, or a message's.
    const Duration grown = behind(handle.end) - lag;
    if (grown > Duration{}) {
      ++totals_.overruns;
      totals_.overrun_time += grown;
    }
  }
  free_at_ = handle.end;
  totals_.busy += handle.end - begin;
  ++totals_.kernels;
  return handle;
}

Device::Handle Device::start(const KernelSpec& kernel, const std::function<void()>& work) {
  Handle handle = occupy(kernel, work);
  handle.number = ++started_;
  under_way_.emplace(handle.number, handle.end);
  return handle;
}

Device::Handle Device::run(const KernelSpec& kernel, const std::function<void()>& work) {
  const Handle handle = occupy(kernel, work);
  time_ = handle.end;
  return handle;
}

Device::Handle Device::interrupt(const KernelSpec& message) {
  if (free_at_ <= time_) return run(message, nullptr);
  const Duration cost = duration(message);
  const Handle handle{time_, schedule_.finish(time_, cost)};
  // No work is lost, so what was to end at t now ends where as much more is done after t.
  const Instant was_free_at = std::exchange(free_at_, schedule_.finish(free_at_, cost));
  for (auto& [number, end] : under_way_)
    if (end > time_) end = schedule_.finish(end, cost);
  totals_.busy += free_at_ - was_free_at;
  ++totals_.kernels;
  time_ = handle.end;
  return handle;
}

Instant Device::end_of(const Handle& handle) const {
  const auto found = under_way_.find(handle.number);
  return found == under_way_.end() ? handle.end : found->second;
}

void Device::wait(const Handle& handle) {
  time_ = std::max(time_, end_of(handle));
  under_way_.erase(handle.number);
  settle();
}

void Device::settle() {
  if (time_ <= slept_to_) return;
  clock_.sleep_until(time_);
  slept_to_ = time_;
}

Instant Device::observe() {
  settle();
  time_ = std::max(time_, clock_.now());
  slept_to_ = time_;
  return time_;
}

}  // namespace orrery
