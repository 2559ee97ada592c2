#include "agents/device.hh"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.hh"

namespace orrery {
namespace {

constexpr Duration ms(std::int64_t v) { return Duration::milliseconds(v); }
constexpr Instant at_ms(std::int64_t v) { return {ms(v).ns}; }

/// Time passes only by sleeping.
class FakeClock : public Clock {
 public:
  Instant now() override { return now_; }
  void sleep_until(Instant t) override { now_ = std::max(now_, t); }

 private:
  Instant now_{};
};

/// Every kernel takes `count` milliseconds at speed 1.
struct CountedCost : CostModel {
  Duration base(const KernelSpec& kernel) const override { return ms(kernel.count); }
};

KernelSpec lasting(std::int64_t milliseconds) { return copy_kernel(milliseconds); }

TEST(SpeedSchedule, NoStepsIsFactorOne) {
  EXPECT_EQ(SpeedSchedule().finish(at_ms(5), ms(10)), at_ms(15));
}

TEST(SpeedSchedule, StragglerOfFactorFourCostsFourTimes) {
  const SpeedSchedule straggler({{at_ms(100), 0.25}, {at_ms(200), 1}});
  EXPECT_EQ(straggler.finish(at_ms(0), ms(10)), at_ms(10));
  EXPECT_EQ(straggler.finish(at_ms(100), ms(10)), at_ms(140));
  // 5 ms before it begins, the other 5 ms four times as long.
  EXPECT_EQ(straggler.finish(at_ms(95), ms(10)), at_ms(120));
  // 5 of 10 ms are done when it ends.
  EXPECT_EQ(straggler.finish(at_ms(180), ms(10)), at_ms(205));
  // Across all of it: 10 before, 25 inside 100 ms, 5 after.
  EXPECT_EQ(straggler.finish(at_ms(90), ms(40)), at_ms(205));
  EXPECT_EQ(straggler.finish(at_ms(300), ms(10)), at_ms(310));
}

TEST(SpeedSchedule, EndsExactlyAtAStep) {
  const SpeedSchedule schedule({{at_ms(10), 0}, {at_ms(50), 1}});
  EXPECT_EQ(schedule.finish(at_ms(0), ms(10)), at_ms(10));
}

TEST(SpeedSchedule, PauseStopsWorkAndWhatBeginsInIt) {
  const SpeedSchedule pause({{at_ms(10), 0}, {at_ms(50), 1}});
  EXPECT_EQ(pause.finish(at_ms(5), ms(10)), at_ms(55));
  EXPECT_EQ(pause.finish(at_ms(20), ms(10)), at_ms(60));
  EXPECT_EQ(pause.finish(at_ms(20), ms(0)), at_ms(50));
}

TEST(SpeedSchedule, PausedForEver) {
  const SpeedSchedule stopped({{at_ms(10), 0}});
  EXPECT_EQ(stopped.finish(at_ms(0), ms(10)), at_ms(10));
  EXPECT_EQ(stopped.finish(at_ms(0), ms(11)).ns, std::numeric_limits<std::int64_t>::max());
}

TEST(SpeedSchedule, BackToBackAndSimultaneousSteps) {
  const SpeedSchedule schedule(
      {{at_ms(10), 0.5}, {at_ms(20), 0.25}, {at_ms(20), 2}, {at_ms(30), 1}});
  // 10 + 5 in the slow ten milliseconds; of the two steps at 20 ms the later one holds.
  EXPECT_EQ(schedule.finish(at_ms(0), ms(15)), at_ms(20));
  EXPECT_EQ(schedule.finish(at_ms(0), ms(25)), at_ms(25));
  EXPECT_EQ(schedule.finish(at_ms(20), ms(4)), at_ms(22));
}

TEST(SpeedSchedule, NearlyForEverDoesNotOverflow) {
  const SpeedSchedule crawl({{at_ms(0), 1e-15}});
  EXPECT_EQ(crawl.finish(at_ms(1), Duration::seconds(1e9)).ns,
            std::numeric_limits<std::int64_t>::max());
}

TEST(SpeedSchedule, RefusesWhatIsNoSchedule) {
  EXPECT_THROW(SpeedSchedule({{at_ms(2), 1}, {at_ms(1), 1}}), std::logic_error);
  EXPECT_THROW(SpeedSchedule({{at_ms(2), -1}}), std::logic_error);
  EXPECT_THROW(SpeedSchedule({{at_ms(2), std::numeric_limits<double>::quiet_NaN()}}),
               std::logic_error);
}

class DeviceTest : public ::testing::Test {
 protected:
  FakeClock clock;
  std::shared_ptr<const CostModel> cost = std::make_shared<CountedCost>();
};

TEST_F(DeviceTest, RunTakesItsTimeAndRunsItsWork) {
  Device device(clock, cost, 1);
  bool ran = false;
  const Device::Handle handle = device.run(lasting(7), [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_EQ(handle.begin, at_ms(0));
  EXPECT_EQ(handle.end, at_ms(7));
  EXPECT_EQ(device.time(), at_ms(7));
  EXPECT_EQ(clock.now(), at_ms(0));  // nobody has looked yet
  device.settle();
  EXPECT_EQ(clock.now(), at_ms(7));
  EXPECT_EQ(device.totals().kernels, 1);
  EXPECT_EQ(device.totals().busy, ms(7));
  EXPECT_GT(device.totals().charged_cycles, 0u);
}

TEST_F(DeviceTest, SpeedDivides) {
  Device device(clock, cost, 0.25);
  device.run(lasting(10), [] {});
  device.settle();
  EXPECT_EQ(clock.now(), at_ms(40));
  EXPECT_THROW(Device(clock, cost, 0), std::logic_error);
}

TEST_F(DeviceTest, TwoKernelsOnOneDeviceTakeTheSum) {
  Device device(clock, cost, 1);
  const Device::Handle first = device.start(lasting(10), [] {});
  const Device::Handle second = device.start(lasting(5), [] {});
  EXPECT_EQ(second.begin, first.end);
  device.wait(second);
  EXPECT_EQ(clock.now(), at_ms(15));
  device.wait(first);
  EXPECT_EQ(clock.now(), at_ms(15));
}

TEST_F(DeviceTest, TwoDevicesTakeTheMaximum) {
  Device slow(clock, cost, 0.5);
  Device fast(clock, cost, 1);
  const Device::Handle a = slow.start(lasting(10), [] {});
  const Device::Handle b = fast.start(lasting(10), [] {});
  slow.wait(a);
  fast.wait(b);
  EXPECT_EQ(clock.now(), at_ms(20));
}

TEST_F(DeviceTest, StartOverlapsWithWaitingForSomethingElse) {
  Device device(clock, cost, 1);
  const Device::Handle handle = device.start(lasting(10), [] {});
  EXPECT_EQ(clock.now(), at_ms(0));
  clock.sleep_until(at_ms(8));  // a message arrives meanwhile
  device.wait(handle);
  EXPECT_EQ(clock.now(), at_ms(10));
  clock.sleep_until(at_ms(30));
  EXPECT_EQ(device.observe(), at_ms(30));
  EXPECT_EQ(device.run(lasting(1), [] {}).begin, at_ms(30));
}

TEST_F(DeviceTest, ObservingFirstSleepsToTheNodesOwnTime) {
  Device device(clock, cost, 1);
  device.run(lasting(5), [] {});
  device.run(lasting(5), [] {});
  EXPECT_EQ(device.observe(), at_ms(10));
  EXPECT_EQ(clock.now(), at_ms(10));
}

TEST_F(DeviceTest, AMessageInterruptsWhatIsUnderWay) {
  Device device(clock, cost, 1);
  const Device::Handle first = device.start(lasting(10), [] {});
  const Device::Handle second = device.start(lasting(5), [] {});
  clock.sleep_until(at_ms(4));
  device.observe();
  // It does not wait for the kernels, and they end later by what it takes.
  EXPECT_EQ(device.interrupt(lasting(3)).end, at_ms(7));
  EXPECT_EQ(device.time(), at_ms(7));
  EXPECT_EQ(device.end_of(first), at_ms(13));
  EXPECT_EQ(device.end_of(second), at_ms(18));
  clock.sleep_until(at_ms(14));
  device.observe();
  device.interrupt(lasting(1));
  EXPECT_EQ(device.end_of(first), at_ms(13));  // it had ended
  device.wait(second);
  EXPECT_EQ(clock.now(), at_ms(19));
  EXPECT_EQ(device.totals().busy, ms(19));
  EXPECT_EQ(device.totals().kernels, 4);
}

TEST_F(DeviceTest, AMessageOnAFreeDeviceIsAKernel) {
  Device device(clock, cost, 1);
  EXPECT_EQ(device.interrupt(lasting(3)).end, at_ms(3));
  EXPECT_EQ(device.start(lasting(1), [] {}).begin, at_ms(3));
}

TEST_F(DeviceTest, InterruptedWorkMeetsTheScheduleItIsPutOffInto) {
  Device device(clock, cost, 1, SpeedSchedule({{at_ms(10), 0.25}}));
  const Device::Handle handle = device.start(lasting(10), [] {});
  device.interrupt(lasting(2));
  EXPECT_EQ(device.end_of(handle), at_ms(18));  // 2 of 12 ms of work are left at 10 ms
}

TEST_F(DeviceTest, AScheduleStretchesKernels) {
  Device device(clock, cost, 0.5, SpeedSchedule({{at_ms(10), 0.25}, {at_ms(90), 1}}));
  // 10 ms of work take 20 at this speed: 10 done before the straggling, the rest four times as
  // long.
  EXPECT_EQ(device.run(lasting(10), [] {}).end, at_ms(50));
  EXPECT_EQ(device.totals().busy, ms(50));
}

TEST(Roofline, ArithmeticAndOverheads) {
  RooflineCost roofline;
  roofline.flops_per_second = 1e9;
  roofline.bytes_per_second = 1e8;
  roofline.kernel_overhead = Duration::microseconds(5);
  roofline.message_overhead = Duration::microseconds(50);
  KernelSpec kernel = reduce_kernel(1000);
  kernel.flops = 1e6;
  kernel.bytes = 1000;
  EXPECT_EQ(roofline.base(kernel), ms(1) + Duration::microseconds(5));
  kernel.bytes = 1e6;
  EXPECT_EQ(roofline.base(kernel), ms(10) + Duration::microseconds(5));
  // 50,000 bytes, read and written.
  EXPECT_EQ(roofline.base(message_kernel(50'000)), ms(1) + Duration::microseconds(50));
  roofline.flops_per_second = 0;
  roofline.bytes_per_second = 0;
  EXPECT_EQ(roofline.base(kernel), Duration::microseconds(5));
}

ProfileCost::Entry measured(const KernelSpec& kernel, std::int64_t median_us) {
  return {kernel, Duration::microseconds(median_us), Duration::microseconds(2 * median_us)};
}

TEST(ProfileCostTest, ExactKernelsAreNotCounted) {
  const ProfileCost cost({measured(reduce_kernel(100), 10)});
  EXPECT_EQ(cost.base(reduce_kernel(100)), Duration::microseconds(10));
  EXPECT_EQ(cost.interpolated(), 0);
}

TEST(ProfileCostTest, InterpolatesBetweenCountsAndKeepsFixedCosts) {
  const ProfileCost cost({measured(message_kernel(100), 20), measured(message_kernel(1100), 30),
                          measured(message_kernel(2100), 50)});
  EXPECT_EQ(cost.base(message_kernel(600)), Duration::microseconds(25));
  EXPECT_EQ(cost.base(message_kernel(0)), Duration::microseconds(19));
  EXPECT_EQ(cost.base(message_kernel(3100)), Duration::microseconds(70));
  EXPECT_EQ(cost.interpolated(), 3);
}

TEST(ProfileCostTest, TimesThatFallWithCountAreTakenAsEqual) {
  const ProfileCost cost({measured(copy_kernel(10), 30), measured(copy_kernel(20), 20)});
  EXPECT_EQ(cost.base(copy_kernel(40)), Duration::microseconds(30));
}

TEST(ProfileCostTest, OneCountScales) {
  const ProfileCost cost({measured(reduce_kernel(100), 10)});
  EXPECT_EQ(cost.base(reduce_kernel(250)), Duration::microseconds(25));
}

TEST(ProfileCostTest, OtherLayersScaleByFlops) {
  const ModelSpec mlp = make_mlp({100, 50, 10}, LayerKind::tanh);
  const ProfileCost cost({measured(forward_kernel(mlp, 0, 1, 10), 100),
                          measured(forward_kernel(mlp, 2, 3, 10), 1000)});
  KernelSpec other = forward_kernel(mlp, 0, 2, 10);
  other.flops = 2 * forward_kernel(mlp, 0, 1, 10).flops;
  EXPECT_EQ(cost.base(other), Duration::microseconds(200));
}

TEST(ProfileCostTest, NothingOfTheOperationIsAnError) {
  const ProfileCost cost({measured(reduce_kernel(100), 10)});
  try {
    cost.base(copy_kernel(5));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the profile has no kernel like \"copy x5\"; profile this placement");
  }
}

TEST(MonotonicClockTest, CountsFromItsEpochAndSleepsThroughSignals) {
  MonotonicClock clock;
  clock.set_epoch(clock.now().ns);
  const Instant begin = clock.now();
  EXPECT_LT(begin, Instant{Duration::seconds(10).ns});
  clock.sleep_until({begin.ns - 1});  // has passed: returns at once

  struct sigaction ignore {};
  ignore.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &ignore, &before), 0);
  const itimerval often{{0, 2000}, {0, 2000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  const Instant until = clock.now() + ms(20);
  clock.sleep_until(until);
  EXPECT_GE(clock.now(), until);
  const itimerval off{};
  ::setitimer(ITIMER_REAL, &off, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace orrery
