// What chance does to packets on one direction of a link. Everything random is here, and nothing
// else: a new impairment is a field of LinkModel, of Fate, and a few lines in draw().
#pragma once

#include "netshape/fabric/link_model.hh"

namespace orrery::netshape {

/// What was drawn for one packet.
struct Fate {
  bool lost = false;
  bool marked = false;  ///< congestion experienced
  bool duplicated = false;
  bool corrupted = false;
  bool hurried = false;            ///< skips the delay
  std::uint32_t corrupt_draw = 0;  ///< chooses the bit
  Duration delay;                  ///< the link's own, jitter included; not below zero
};

/// A stream of fates. The n-th packet's is a pure function of (seed, n, model), where losses come
/// in bursts of the packets before it too: it depends on no time, no thread and no other link.
class Impairments {
 public:
  explicit Impairments(LinkModel model) : model_(std::move(model)) {}
  /// Other odds from the next packet on; the count of packets goes on.
  void change(LinkModel model) { model_ = std::move(model); }
  const LinkModel& model() const { return model_; }

  Fate draw(bool speaks_ecn);

 private:
  Duration draw_delay(std::uint32_t word) const;

  LinkModel model_;
  std::uint64_t number_ = 0;  ///< of the next packet
  LossChain chain_;
};

}  // namespace orrery::netshape
