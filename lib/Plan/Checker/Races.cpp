//===- Races.cpp - Conflicting accesses that nothing orders ---------------===//
//
// One sweep over the operations in issue order keeps, for every interval of
// addresses, the last operation that wrote it and the last reader on each
// stream. An access must come after the writer; a write also after the readers.
// Operations before those are ordered before them, or were found to race with
// them, so the last suffice. Addresses, not buffers, are compared: two buffers
// may share bytes when everything that touches one comes before the other.
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include <array>
#include <map>

using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

constexpr int32_t none = -1;

/// Operation and the buffer it touched.
struct Last {
  int32_t operation = none;
  uint32_t buffer = 0;
};

struct Interval {
  uint64_t end;
  Last writer;
  std::array<Last, kMaxStreams> readers;
};

class Sweep {
public:
  Sweep(Context &context, const RegionInfo &region, const HappensBefore &order)
      : c(context), region(region), order(order),
        memories(static_cast<size_t>(context.plan.memory_size())) {}

  void run();

private:
  using Map = std::map<uint64_t, Interval>;

  void access(size_t operation, uint32_t buffer, uint64_t begin, uint64_t end,
              bool writes);
  Map::iterator split(Map &map, uint64_t address);
  void expectAfter(Last earlier, const char *did, size_t operation,
                   uint32_t buffer, const char *does, uint64_t begin,
                   uint64_t end);

  Context &c;
  const RegionInfo &region;
  const HappensBefore &order;
  std::vector<Map> memories;
};

void Sweep::run() {
  for (size_t i = 0; i < region.operations.size() && !c.full(); ++i) {
    if (!order.runs(i))
      continue;
    const OperationInfo &info = region.operations[i];
    // Taking a transient buffer overwrites all of it.
    for (const OperationInfo::Acquired &acquired : info.acquired)
      access(i, acquired.buffer, 0, c.buffer(acquired.buffer).size(), true);
    for (const Touch &touch : info.touches)
      if (touch.reads && !touch.writes)
        access(i, touch.buffer(), touch.begin, touch.end, false);
    for (const Touch &touch : info.touches)
      if (touch.writes)
        access(i, touch.buffer(), touch.begin, touch.end, true);
  }
}

/// First interval that starts at or after `address`; one across it is divided.
Sweep::Map::iterator Sweep::split(Map &map, uint64_t address) {
  auto next = map.lower_bound(address);
  if (next == map.begin())
    return next;
  auto previous = std::prev(next);
  if (previous->second.end <= address)
    return next;
  Interval tail = previous->second;
  previous->second.end = address;
  return map.emplace_hint(next, address, tail);
}

void Sweep::access(size_t operation, uint32_t index, uint64_t begin,
                   uint64_t end, bool writes) {
  const pb::Buffer &buffer = c.buffer(index);
  Map &map = memories[buffer.memory()];
  begin += buffer.offset();
  end += buffer.offset();
  uint32_t stream = region.operations[operation].operation->stream();
  Last self{static_cast<int32_t>(operation), index};

  split(map, end);
  auto it = split(map, begin);
  uint64_t address = begin;
  while (it != map.end() && it->first < end) {
    Interval &interval = it->second;
    uint64_t from = it->first, to = interval.end;
    if (!c.spend(1))
      return;
    expectAfter(interval.writer, "writes", operation, index,
                writes ? "writes" : "reads", from, to);
    if (!writes) {
      // Bytes that nobody touched so far.
      if (address < from) {
        Interval fresh{from, {}, {}};
        fresh.readers[stream] = self;
        map.emplace_hint(it, address, fresh);
      }
      interval.readers[stream] = self;
      address = to;
      ++it;
      continue;
    }
    for (const Last &reader : interval.readers)
      expectAfter(reader, "reads", operation, index, "writes", from, to);
    it = map.erase(it);
  }
  if (writes) {
    map.emplace_hint(it, begin, Interval{end, self, {}});
  } else if (address < end) {
    Interval fresh{end, {}, {}};
    fresh.readers[stream] = self;
    map.emplace_hint(it, address, fresh);
  }
}

void Sweep::expectAfter(Last earlier, const char *did, size_t operation,
                        uint32_t buffer, const char *does, uint64_t begin,
                        uint64_t end) {
  size_t other = static_cast<size_t>(earlier.operation);
  if (earlier.operation == none || other == operation ||
      order.before(other, operation))
    return;
  uint64_t offset = c.buffer(buffer).offset();
  std::string text = std::string(" ") + does + " " + c.bufferText(buffer) +
                     " bytes [" + std::to_string(begin - offset) + ", " +
                     std::to_string(end - offset) + ") while " +
                     c.where(region.place(other)) + " " + did + " ";
  text += earlier.buffer == buffer
              ? "them"
              : c.bufferText(earlier.buffer) + ", which shares their addresses";
  c.failAt("race", region.place(operation), text + ": no wait orders the two",
           region.place(other));
}

} // namespace

void check::checkRaces(Context &context, const RegionInfo &region,
                       const HappensBefore &order) {
  Sweep(context, region, order).run();
}

void check::checkOrder(Context &context) {
  for (const RegionInfo &region : context.regions)
    for (Variant variant : orderVariants(*region.region)) {
      HappensBefore order(region, context.plan.streams_size(), variant);
      checkRaces(context, region, order);
      checkCollectives(context, region, order);
    }
}
