//===- LiveBytes.cpp - The most bytes live at once, exactly ---------------===//
//
// Two buffers can be live at once unless every access of one happens before
// every access of the other. The heaviest set of which any two can is found a
// region at a time: regions are joined, so some region sees all of it. A
// transient buffer is acquired where its life begins and free again where an
// operation starts that all its accesses happen before; a repeated region holds
// what it shares with another region or iteration throughout.
//
//===----------------------------------------------------------------------===//

#include "LiveBytes.h"

#include "HappensBefore.h"

#include "gtp/Support/ReuseNetwork.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <array>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

constexpr int32_t none = -1;

/// Where the program touches a buffer.
struct Span {
  uint32_t first = UINT32_MAX, last = 0; ///< regions
  bool carried = false;                  ///< between iterations
};

std::vector<Span> spansOf(const Context &c) {
  std::vector<Span> spans(static_cast<size_t>(c.plan.buffers_size()));
  for (const RegionInfo &region : c.regions)
    for (const OperationInfo &info : region.operations)
      for (const Touch &touch : info.touches) {
        Span &span = spans[touch.buffer()];
        span.first = std::min(span.first, region.index);
        span.last = region.index;
        span.carried |= isCarried(touch, *info.operation);
      }
  return spans;
}

/// One variant of one region.
class RegionPeak {
public:
  RegionPeak(Context &context, const RegionInfo &region, Variant variant)
      : c(context), region(region),
        order(region, context.plan.streams_size(), variant),
        streams(static_cast<size_t>(context.plan.streams_size())),
        onStream(streams) {
    for (size_t i = 0; i < region.operations.size(); ++i)
      if (order.runs(i))
        onStream[region.operations[i].operation->stream()].push_back(i);
    findTouches();
  }

  uint64_t measure(const std::vector<Span> &spans,
                   const std::vector<bool> &counted);

private:
  struct Place {
    int32_t acquired = none;
    /// Last operation of each stream that touches it.
    std::array<int32_t, kMaxStreams> last;
  };

  void findTouches();
  void addOrder(ReuseNetwork &network) const;
  void addRelease(ReuseNetwork &network, const Place &place,
                  uint64_t weight) const;

  Context &c;
  const RegionInfo &region;
  HappensBefore order;
  size_t streams;
  std::vector<std::vector<size_t>> onStream;
  std::vector<Place> places;
};

void RegionPeak::findTouches() {
  Place nowhere;
  nowhere.last.fill(none);
  places.assign(static_cast<size_t>(c.plan.buffers_size()), nowhere);
  for (size_t i = 0; i < region.operations.size(); ++i) {
    if (!order.runs(i))
      continue;
    const OperationInfo &info = region.operations[i];
    for (const OperationInfo::Acquired &acquired : info.acquired)
      places[acquired.buffer].acquired = static_cast<int32_t>(i);
    for (const Touch &touch : info.touches)
      places[touch.buffer()].last[info.operation->stream()] =
          static_cast<int32_t>(i);
  }
}

/// Nodes are operations; arcs are stream order and waits.
void RegionPeak::addOrder(ReuseNetwork &network) const {
  std::vector<uint32_t> recorder(region.region->events());
  std::vector<int32_t> previous(streams, none);
  for (uint32_t i = 0; i < region.operations.size(); ++i) {
    network.addNode();
    if (!order.runs(i))
      continue;
    const pb::Operation &operation = *region.operations[i].operation;
    for (const pb::Wait &wait : operation.waits())
      network.addArc(i, recorder[wait.event()]);
    int32_t &before = previous[operation.stream()];
    if (before != none)
      network.addArc(i, static_cast<uint32_t>(before));
    before = static_cast<int32_t>(i);
    if (operation.event_plus1())
      recorder[operation.event_plus1() - 1] = i;
  }
}

/// The memory comes back at the first operation of each stream that all
/// accesses happen before.
void RegionPeak::addRelease(ReuseNetwork &network, const Place &place,
                            uint64_t weight) const {
  std::vector<size_t> ends;
  for (const std::vector<size_t> &chain : onStream) {
    auto isEarly = [&](size_t candidate, int) {
      return std::any_of(place.last.begin(), place.last.end(), [&](int32_t op) {
        return op != none &&
               (static_cast<size_t>(op) == candidate ||
                !order.before(static_cast<size_t>(op), candidate));
      });
    };
    auto end = std::lower_bound(chain.begin(), chain.end(), 0, isEarly);
    if (end != chain.end())
      ends.push_back(*end);
  }
  if (ends.empty())
    return;
  uint32_t node = static_cast<uint32_t>(ends.front());
  if (ends.size() > 1) {
    node = network.addNode();
    for (size_t end : ends)
      network.addArc(static_cast<uint32_t>(end), node);
  }
  network.release(node, weight);
}

uint64_t RegionPeak::measure(const std::vector<Span> &spans,
                             const std::vector<bool> &counted) {
  ReuseNetwork network;
  addOrder(network);
  bool repeats = region.region->repeat() > 1;
  uint64_t total = 0;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    const Span &span = spans[i];
    const pb::Buffer &buffer = c.buffer(i);
    bool whole = buffer.kind() != pb::Buffer::TRANSIENT;
    if (!counted[i] ||
        (!whole && (region.index < span.first || region.index > span.last)))
      continue;
    uint64_t weight = roundedSize(buffer);
    total += weight;
    bool local = span.first == span.last && !span.carried;
    bool throughout = whole || (repeats && !local);
    const Place &place = places[i];
    if (!throughout && region.index == span.first && place.acquired != none)
      network.acquire(static_cast<uint32_t>(place.acquired), weight);
    if (!throughout && region.index == span.last)
      addRelease(network, place, weight);
  }
  constexpr uint64_t enough = 50'000'000;
  std::optional<uint64_t> reused = network.solve(enough);
  if (reused)
    return total - *reused;
  c.fail("structure", "region " + std::to_string(region.index) +
                          " is too complex to find how many bytes are live "
                          "at once: its operations wait for each other more "
                          "than those of any training step");
  return total;
}

} // namespace

uint64_t check::roundedSize(const pb::Buffer &buffer) {
  return gtp::roundUp(buffer.size(), 256);
}

LivePeaks check::findLivePeaks(Context &c) {
  size_t buffers = static_cast<size_t>(c.plan.buffers_size());
  std::vector<bool> all(buffers), gathered(buffers), compute(buffers);
  for (uint32_t i = 0; i < buffers; ++i)
    all[i] = c.buffer(i).memory() == 0;
  for (const pb::Parameter &parameter : c.plan.parameters())
    compute[parameter.compute_buffer()] = true;
  for (const RegionInfo &region : c.regions)
    for (const OperationInfo &info : region.operations) {
      // A gather in place reads there what is the parameter's.
      if (info.operation->has_copy() &&
          !info.touches[1].operand->rank_strides().empty() &&
          compute[info.touches[0].buffer()])
        compute[info.touches[1].buffer()] = true;
      if (!info.operation->has_collective() ||
          info.operation->collective().kind() != pb::Collective::ALL_GATHER)
        continue;
      size_t members = info.touches.size() / 2;
      for (size_t i = 0; i < members; ++i) {
        uint32_t destination = info.touches[members + i].buffer();
        if (compute[info.touches[i].buffer()])
          gathered[destination] = all[destination];
      }
    }

  std::vector<Span> spans = spansOf(c);
  bool anyGathered =
      std::find(gathered.begin(), gathered.end(), true) != gathered.end();
  LivePeaks peaks;
  for (const RegionInfo &region : c.regions)
    for (Variant variant : orderVariants(*region.region)) {
      if (!c.spend(buffers))
        return peaks;
      RegionPeak peak(c, region, variant);
      peaks.all = std::max(peaks.all, peak.measure(spans, all));
      if (anyGathered)
        peaks.gathered =
            std::max(peaks.gathered, peak.measure(spans, gathered));
    }
  return peaks;
}
