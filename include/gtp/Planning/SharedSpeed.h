//===- SharedSpeed.h - What operations take from those beside them --------===//
//
// Collectives share links, and take memory, power and multiprocessors from
// compute; compute slows them down. Speeds are whole numbers, so that they are
// the same on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLANNING_SHAREDSPEED_H
#define GTP_PLANNING_SHAREDSPEED_H

#include "gtp/Planning/Schedule.h"

#include <algorithm>

namespace gtp::planning {

/// Speeds of what runs at one moment: first of its collectives, then of its
/// compute.
class SharedSpeed {
public:
  /// The speed of an operation that runs alone.
  static constexpr int64_t kAlone = int64_t(1) << 20;

  /// `together`: more than one collective runs; `computing`: compute does.
  SharedSpeed(bool together, bool computing, int64_t sharedLinkPermille)
      : computing(computing),
        link(together ? kAlone * sharedLinkPermille / 1000 : kAlone) {}

  /// That of one of the collectives, from 1; compute loses what it takes.
  int64_t addCollective(const TransferCost &cost) {
    int64_t speed = link;
    if (computing) {
      speed = speed * 1000 / (1000 + cost.slowdownPermille);
      if (cost.durationNs)
        (cost.holdsMultiprocessors ? lostHeld : lost) += std::min<int64_t>(
            kAlone, double(cost.contentionNs) / cost.durationNs * speed);
      held |= cost.holdsMultiprocessors;
    }
    return std::max<int64_t>(speed, 1);
  }

  /// That of compute beside the collectives added; it keeps at least a
  /// twentieth. `crowdedPermille` is that of ComputeOp.
  int64_t ofCompute(int64_t crowdedPermille) const {
    int64_t most = kAlone - lostHeld;
    if (held)
      most = std::min(most, kAlone * 1000 / (1000 + crowdedPermille));
    return std::max(most - lost, kAlone / 20);
  }

private:
  const bool computing;
  const int64_t link;
  /// What compute loses to collectives that hold multiprocessors, to others.
  int64_t lostHeld = 0, lost = 0;
  bool held = false;
};

} // namespace gtp::planning

#endif // GTP_PLANNING_SHAREDSPEED_H
