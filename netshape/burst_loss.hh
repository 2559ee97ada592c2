// Losses that come in bursts: Markov chains with one step a packet, as netem has them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/units.hh"

namespace orrery::netshape {

/// Two states, each with a loss of its own (E. N. Gilbert, "Capacity of a burst-noise channel",
/// Bell System Technical Journal 39, 1960; E. O. Elliott, ibid. 42, 1963). A packet is lost with
/// the odds of the state that it finds; begins in good.
struct GilbertElliott {
  Probability to_bad;        ///< p, after a packet in good
  Probability to_good;       ///< r, after a packet in bad
  Probability loss_bad{1};   ///< 1 - h
  Probability loss_good{0};  ///< 1 - k
  friend bool operator==(const GilbertElliott&, const GilbertElliott&) = default;
};

/// Gilbert's chain by what can be seen of it: the share of packets that are lost, and how many are
/// lost in a row on average (from 1 on).
GilbertElliott gilbert(Probability share, double burst);

/// Four states (Salsano, Ludovici, Ordine, Giannuzzi, "Definition of a general and intuitive loss
/// model for packet networks and its implementation in the Netem module in the Linux kernel",
/// University of Rome "Tor Vergata", 2012): 1 received in a gap between bursts, 2 received within a
/// burst, 3 lost within a burst, 4 lost alone in a gap. pXY: from X to Y; a packet is lost if its
/// step leads to 3 or 4. From 4 the way is to 1.
struct FourState {
  Probability p13;
  Probability p31;
  Probability p32;
  Probability p23;
  Probability p14;
  friend bool operator==(const FourState&, const FourState&) = default;
};

using BurstLoss = std::variant<GilbertElliott, FourState>;

/// The share of packets that are lost in the long run.
double mean_loss(const BurstLoss& loss);
/// What is wrong with it, each as "what; what would be right"; empty when all is well.
std::vector<std::string> problems(const BurstLoss& loss);
/// As in "loss Gilbert-Elliott p 1% r 25% bad 100% good 0%".
std::string to_string(const BurstLoss& loss);

/// The chain itself, for whoever has no kernel to draw for it.
class LossChain {
 public:
  /// Whether the next packet is lost. `step` and `draw` are even in [0, 1) and independent.
  bool next(const BurstLoss& loss, double step, double draw);

 private:
  int state_ = 1;  ///< of four; of two: 1 good, 3 bad
};

}  // namespace orrery::netshape
