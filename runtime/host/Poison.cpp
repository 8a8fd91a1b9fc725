//===- Poison.cpp - Which operation acquires which buffer -----------------===//
//
// A buffer's bytes hold nothing before the first operation that touches it, so
// the executor fills them with NaN there: a read of what was never written, or
// of a stale tail, then shows in the numbers. This is done on the acquiring
// operation's own stream: what the plan does not order after it races anyway.
//
//===----------------------------------------------------------------------===//

#include "Poison.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::rt;
using namespace gtp::rt::host;

namespace {

/// Which operations of a region happen before an operation in one iteration.
class Order {
public:
  enum Kind {
    FirstIteration,
    AnyIteration, ///< knows only operations that run in every iteration
  };
  Order(const Region &region, Kind kind) : clocks(region.operations.size()) {
    std::vector<std::vector<uint32_t>> last(
        region.streams.size(), std::vector<uint32_t>(region.streams.size()));
    std::vector<const Operation *> recorder(region.events);
    for (const Operation &operation : region.operations) {
      if (kind == FirstIteration ? !operation.runsIn(0, region.repeat)
                                 : operation.when != pb::Operation::ALWAYS)
        continue;
      std::vector<uint32_t> &clock = last[operation.stream];
      for (uint32_t event : operation.waits) {
        const std::vector<uint32_t> &other = clocks[recorder[event]->index];
        for (size_t stream = 0; stream < clock.size(); ++stream)
          clock[stream] = std::max(clock[stream], other[stream]);
      }
      clock[operation.stream] = operation.index + 1;
      clocks[operation.index] = clock;
      if (operation.eventPlus1)
        recorder[operation.eventPlus1 - 1] = &operation;
    }
  }

  bool before(const Operation &a, const Operation &b) const {
    return clocks[b.index][a.stream] > a.index;
  }

private:
  /// For each operation and stream, 1 + the stream's last operation that is
  /// done when this one is.
  std::vector<std::vector<uint32_t>> clocks;
};

struct Touch {
  size_t region;
  uint32_t operation;
};

} // namespace

/// Whether the operation takes nothing from the buffer.
static bool onlyWrites(const Operation &operation, uint32_t buffer) {
  for (const Place &place : operation.places)
    if (place.buffer == buffer && place.reads && !place.scratch)
      return false;
  return true;
}

/// Whether the buffer carries anything from one iteration to the next.
static bool carries(const Operation &operation, uint32_t buffer) {
  if (operation.when != pb::Operation::ALWAYS)
    return true;
  for (const Place &place : operation.places)
    if (place.buffer == buffer &&
        (place.accumulate || place.iterationStride != 0))
      return true;
  return false;
}

/// Whether all uses of the buffer in the operation are scratch.
static bool isScratch(const Operation &operation, uint32_t buffer) {
  for (const Place &place : operation.places)
    if (place.buffer == buffer && !place.scratch)
      return false;
  return true;
}

void gtp::rt::host::placePoison(const pb::Plan &plan, Program &program) {
  std::vector<std::vector<Touch>> touches(
      static_cast<size_t>(plan.buffers_size()));
  std::vector<Order> orders, anyOrders;
  for (size_t r = 0; r < program.regions.size(); ++r) {
    orders.emplace_back(program.regions[r], Order::FirstIteration);
    anyOrders.emplace_back(program.regions[r], Order::AnyIteration);
    for (const Operation &operation : program.regions[r].operations)
      for (const Place &place : operation.places) {
        std::vector<Touch> &list = touches[place.buffer];
        if (list.empty() || list.back().region != r ||
            list.back().operation != operation.index)
          list.push_back({r, operation.index});
      }
  }
  for (size_t b = 0; b < touches.size(); ++b) {
    const pb::Buffer &buffer = plan.buffers(static_cast<int>(b));
    if (buffer.kind() != pb::Buffer::TRANSIENT || touches[b].empty())
      continue;
    auto index = static_cast<uint32_t>(b);
    size_t r = touches[b][0].region;
    Region &region = program.regions[r];
    Operation *first = nullptr;
    bool ordered = true, fresh = true, scratch = true;
    for (const Touch &touch : touches[b]) {
      // A join lies between regions, and between iterations.
      if (touch.region != r)
        break;
      Operation &other = region.operations[touch.operation];
      fresh = fresh && !carries(other, index);
      scratch = scratch && isScratch(other, index);
      if (!other.runsIn(0, region.repeat))
        continue;
      if (!first)
        first = &other;
      ordered = ordered && orders[r].before(*first, other);
      fresh = fresh && anyOrders[r].before(*first, other);
    }
    // No plan can go wrong in what only kernels see, and that of a GPU's
    // library is large and not used here.
    if (first && ordered && !scratch)
      first->poisons.push_back(
          {buffer.offset(), buffer.size(), fresh && onlyWrites(*first, index)});
  }
}
