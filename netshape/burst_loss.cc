#include "netshape/burst_loss.hh"

#include <algorithm>

namespace orrery::netshape {
namespace {

void check_share(const std::string& name, Probability p, std::vector<std::string>& found) {
  if (!(p.value >= 0 && p.value <= 1))
    found.push_back(name + " " + std::to_string(p.value) +
                    " is not a probability; write 0 to 1, or 0% to 100%");
}

void check_sum(const std::string& names, double sum, std::vector<std::string>& found) {
  if (sum > 1 + 1e-9)
    found.push_back(names + " add up to " + std::to_string(sum) +
                    ", and both leave the same state; write at most 100% together");
}

}  // namespace

GilbertElliott gilbert(Probability share, double burst) {
  const double leave = 1 / burst;
  // In the long run bad / good = p / r, and bad is the share.
  const double enter = share.value < 1 ? leave * share.value / (1 - share.value) : 1;
  return {{std::min(1.0, enter)}, {leave}, {1}, {0}};
}

double mean_loss(const BurstLoss& loss) {
  if (const auto* two = std::get_if<GilbertElliott>(&loss)) {
    const double moves = two->to_bad.value + two->to_good.value;
    const double bad = moves > 0 ? two->to_bad.value / moves : 0;
    return bad * two->loss_bad.value + (1 - bad) * two->loss_good.value;
  }
  // Flows in and out of each state are equal; all by that of state 1.
  const auto& four = std::get<FourState>(loss);
  if (four.p13.value > 0 && four.p31.value <= 0) {
    // Nothing leads back to the gap: within the burst for ever.
    const double moves = four.p32.value + four.p23.value;
    return moves > 0 ? four.p23.value / moves : 1;
  }
  const double lost_in_burst = four.p13.value > 0 ? four.p13.value / four.p31.value : 0;
  const double received_in_burst =
      four.p23.value > 0 ? lost_in_burst * four.p32.value / four.p23.value : 0;
  const double lost_alone = four.p14.value;
  return (lost_in_burst + lost_alone) / (1 + received_in_burst + lost_in_burst + lost_alone);
}

std::vector<std::string> problems(const BurstLoss& loss) {
  std::vector<std::string> found;
  if (const auto* two = std::get_if<GilbertElliott>(&loss)) {
    check_share("Gilbert-Elliott's p", two->to_bad, found);
    check_share("Gilbert-Elliott's r", two->to_good, found);
    check_share("Gilbert-Elliott's loss_bad", two->loss_bad, found);
    check_share("Gilbert-Elliott's loss_good", two->loss_good, found);
    return found;
  }
  const auto& four = std::get<FourState>(loss);
  check_share("p13", four.p13, found);
  check_share("p31", four.p31, found);
  check_share("p32", four.p32, found);
  check_share("p23", four.p23, found);
  check_share("p14", four.p14, found);
  check_sum("p13 and p14", four.p13.value + four.p14.value, found);
  check_sum("p31 and p32", four.p31.value + four.p32.value, found);
  if (four.p32.value > 0 && four.p23.value <= 0)
    found.push_back("p32 " + orrery::to_string(four.p32) +
                    " leads to a state that p23 0% never leaves; write a p23 above zero");
  return found;
}

std::string to_string(const BurstLoss& loss) {
  const auto put = [](const char* name, Probability p) {
    return " " + std::string(name) + " " + orrery::to_string(p);
  };
  if (const auto* two = std::get_if<GilbertElliott>(&loss))
    return "loss Gilbert-Elliott" + put("p", two->to_bad) + put("r", two->to_good) +
           put("bad", two->loss_bad) + put("good", two->loss_good);
  const auto& four = std::get<FourState>(loss);
  return "loss four-state" + put("p13", four.p13) + put("p31", four.p31) + put("p32", four.p32) +
         put("p23", four.p23) + put("p14", four.p14);
}

bool LossChain::next(const BurstLoss& loss, double step, double draw) {
  if (const auto* two = std::get_if<GilbertElliott>(&loss)) {
    const bool bad = state_ == 3;
    if (step < (bad ? two->to_good : two->to_bad).value) state_ = bad ? 1 : 3;
    return draw < (bad ? two->loss_bad : two->loss_good).value;
  }
  const auto& four = std::get<FourState>(loss);
  switch (state_) {
    case 2:
      state_ = step < four.p23.value ? 3 : 2;
      break;
    case 3:
      state_ = step < four.p32.value ? 2 : step < four.p32.value + four.p31.value ? 1 : 3;
      break;
    case 4:
      state_ = 1;
      break;
    default:
      state_ = step < four.p14.value ? 4 : step < four.p14.value + four.p13.value ? 3 : 1;
  }
  return state_ >= 3;
}

}  // namespace orrery::netshape
