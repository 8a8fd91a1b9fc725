//===- HappensBefore.h - Order of one region's operations -------*- C++ -*-===//
//
// Vector clocks. Within an iteration an operation happens after those before it
// on its stream and after what the waits of any of these name; the list is in
// issue order, so one pass suffices. Regions and iterations are joined, so
// order between them needs no clock.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_HAPPENSBEFORE_H
#define GTP_LIB_PLAN_CHECKER_HAPPENSBEFORE_H

#include "Context.h"

namespace gtp::plan::check {

class HappensBefore {
public:
  /// Order in an iteration of `variant`; operations that it skips order
  /// nothing.
  HappensBefore(const RegionInfo &region, int streams, Variant variant);

  bool runs(size_t operation) const { return position[operation] != 0; }
  /// Whether operation `a` is complete before `b`, which is later in the list,
  /// starts. Both run.
  bool before(size_t a, size_t b) const {
    return clocks[b * width + stream[a]] >= position[a];
  }

private:
  size_t width;
  std::vector<uint32_t> stream;
  /// 1 + number of operations before it on its stream; 0: does not run.
  std::vector<uint32_t> position;
  /// Of each operation, a row of positions known to be complete, by stream; its
  /// own included.
  std::vector<uint32_t> clocks;
};

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_HAPPENSBEFORE_H
