#include "netshape/burst_loss.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.hh"

namespace orrery::netshape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Seen {
  double share;
  double burst;  ///< mean length of a run of losses
};

Seen run(const BurstLoss& loss, int packets) {
  LossChain chain;
  Philox random(1, "chain");
  int lost = 0;
  int runs = 0;
  bool before = false;
  for (int i = 0; i < packets; ++i) {
    const double step = random.uniform();
    const bool now = chain.next(loss, step, random.uniform());
    lost += now;
    runs += now && !before;
    before = now;
  }
  return {static_cast<double>(lost) / packets, static_cast<double>(lost) / runs};
}

TEST(BurstLoss, GilbertHasTheShareAndTheRunsThatAreAsked) {
  for (const double burst : {1.5, 4.0, 20.0}) {
    const GilbertElliott loss = gilbert({0.05}, burst);
    EXPECT_NEAR(mean_loss(loss), 0.05, 1e-12);
    const Seen seen = run(loss, 1'000'000);
    EXPECT_NEAR(seen.share, 0.05, 0.003) << burst;
    EXPECT_NEAR(seen.burst / burst, 1, 0.05) << burst;
  }
}

TEST(BurstLoss, TheMeanIsWhatTheChainGives) {
  for (const BurstLoss& loss : {BurstLoss{GilbertElliott{{0.01}, {0.1}, {0.7}, {0.001}}},
                                BurstLoss{FourState{{0.01}, {0.2}, {0.3}, {0.4}, {0.005}}},
                                BurstLoss{FourState{{0.02}, {1}, {0}, {1}, {0}}},
                                BurstLoss{FourState{{0}, {1}, {0}, {1}, {0.1}}},
                                BurstLoss{FourState{{0.1}, {0}, {0.5}, {0.5}, {0}}}})
    EXPECT_NEAR(run(loss, 1'000'000).share / mean_loss(loss), 1, 0.04) << to_string(loss);
}

TEST(BurstLoss, NothingIsLostWithoutAWayThere) {
  EXPECT_EQ(mean_loss(GilbertElliott{}), 0);
  EXPECT_EQ(mean_loss(FourState{{0}, {0}, {0}, {1}, {0}}), 0);
  EXPECT_EQ(run(GilbertElliott{}, 1000).share, 0);
}

TEST(BurstLoss, SaysWhatIsWrong) {
  EXPECT_THAT(problems(BurstLoss{GilbertElliott{{0.01}, {0.1}, {0.7}, {0.001}}}), IsEmpty());
  EXPECT_THAT(problems(BurstLoss{GilbertElliott{{1.5}, {0.1}, {1}, {-1}}}),
              ElementsAre(HasSubstr("p 1.5"), HasSubstr("loss_good -1.0")));
  EXPECT_THAT(problems(BurstLoss{FourState{{0.6}, {0.2}, {0.3}, {0.4}, {0.5}}}),
              ElementsAre(HasSubstr("p13 and p14 add up to 1.1")));
  EXPECT_THAT(problems(BurstLoss{FourState{{0.1}, {0.2}, {0.3}, {0}, {0}}}),
              ElementsAre(HasSubstr("write a p23 above zero")));
}

}  // namespace
}  // namespace orrery::netshape
