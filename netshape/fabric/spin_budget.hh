// How much of its processor a thread may spend on looking at the clock. One that looks all the time
// is never late, until the scheduler finds that it has had more than its share, and gives others
// theirs at one stretch.
#pragma once

#include <algorithm>

#include "base/units.hh"

namespace orrery::netshape {

class SpinBudget {
 public:
  /// At most `share` of the time, and at most `burst` at once.
  SpinBudget(double share, Duration burst) : share_(share), burst_(burst), left_(burst) {}

  /// Time went by, and was spent spinning or not.
  void pass(Duration time, bool spinning) {
    left_ = std::min(burst_, left_ + time * share_ - (spinning ? time : Duration{}));
  }
  bool left() const { return left_ > Duration{}; }

 private:
  double share_;
  Duration burst_;
  Duration left_;
};

}  // namespace orrery::netshape
