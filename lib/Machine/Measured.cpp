//===- Measured.cpp - What a profile's measured calls say of others -------===//

#include "CallShape.h"
#include "gtp/Machine/Profile.h"

#include <algorithm>

namespace gtp::machine {

void Profile::Curve::add(double size, double ns) {
  auto place = std::lower_bound(
      points.begin(), points.end(), size,
      [](const Point &point, double wanted) { return point.size < wanted; });
  if (place == points.end() || place->size != size)
    place = points.insert(place, {size, 0, 0});
  place->sumNs += ns;
  ++place->count;
}

std::optional<double> Profile::Curve::at(double size, double zeroNs) const {
  if (points.empty() || size < points.front().size / 2 ||
      size > points.back().size * 2)
    return std::nullopt;
  auto next = std::lower_bound(
      points.begin(), points.end(), size,
      [](const Point &point, double wanted) { return point.size < wanted; });
  // Beyond the largest every byte or flop takes what it takes there.
  if (next == points.end())
    return points.back().ns() * size / points.back().size;
  const double size0 = next == points.begin() ? 0 : std::prev(next)->size;
  const double ns0 = next == points.begin() ? std::min(zeroNs, next->ns())
                                            : std::prev(next)->ns();
  return ns0 + (next->ns() - ns0) * (size - size0) / (next->size - size0);
}

static std::string curveOf(std::string_view kernel, const CallShape &shape) {
  return std::string(kernel) + " " + shape.kind();
}

static std::string curveOf(CollectiveKind kind, Transport transport,
                           int64_t ranks) {
  return std::string(name(kind)) + " " + std::string(name(transport)) + " " +
         std::to_string(ranks);
}

int64_t Profile::measuredNs(const MeasuredKernel &entry) const {
  if (!entry.sustainedNs)
    return entry.aloneNs;
  return std::max<int64_t>(1, betweenNs +
                                  int64_t(stretch * double(entry.sustainedNs)));
}

void Profile::learn() {
  // A step without events around its operations shows what those times lack,
  // or have too much: between kernels lies as much as a launch, and the rest is
  // that of clocks, which events leave time to recover.
  double sustained = 0, calls = 0;
  for (const MeasuredKernel &entry : measuredKernels)
    if (entry.sustainedNs) {
      sustained += double(entry.calls) * double(entry.sustainedNs);
      calls += double(entry.calls);
    }
  if (withoutCollectivesNs && calls > 0) {
    const double whole = double(withoutCollectivesNs);
    betweenNs =
        int64_t(std::clamp((whole - sustained) / calls, 0.0, double(launchNs)));
    stretch = std::max(0.0, whole - double(betweenNs) * calls) / sustained;
  }
  for (const MeasuredKernel &entry : measuredKernels)
    if (auto shape = CallShape::parse(entry.signature))
      if (double size = shape->size(entry.kernel); size > 0)
        curves[curveOf(entry.kernel, *shape)].add(size,
                                                  double(measuredNs(entry)));
  for (const MeasuredCollective &entry : measuredCollectives)
    if (entry.bytes)
      curves[curveOf(entry.kind, entry.transport, entry.ranks)].add(
          double(entry.bytes), double(entry.aloneNs));
  learnContention();
}

std::optional<double> Profile::likeMeasured(std::string_view kernel,
                                            std::string_view signature) const {
  std::optional<CallShape> shape = CallShape::parse(signature);
  if (!shape)
    return std::nullopt;
  auto curve = curves.find(curveOf(kernel, *shape));
  return curve == curves.end()
             ? std::nullopt
             : curve->second.at(shape->size(kernel), double(launchNs));
}

std::optional<double> Profile::likeMeasured(CollectiveKind kind,
                                            Transport transport, int64_t ranks,
                                            int64_t bytes) const {
  auto curve = curves.find(curveOf(kind, transport, ranks));
  return curve == curves.end() ? std::nullopt
                               : curve->second.at(double(bytes), 0);
}

/// A step's collectives of one direction, as they were beside kernels.
namespace {
struct Beside {
  double alone = 0, beside = 0, lost = 0;
  bool holdsMultiprocessors = false;

  /// Of each nanosecond in which one is at work, what compute beside it loses.
  double rate() const { return beside > 0 ? lost / beside : 0; }
};
} // namespace

void Profile::learnContention() {
  Beside gathers, others;
  for (const MeasuredCollective &entry : measuredCollectives)
    for (const Link &link : links) {
      if (link.kind != entry.kind || link.transport != entry.transport)
        continue;
      Beside &of = entry.kind == CollectiveKind::AllGather ? gathers : others;
      of.lost += double(entry.calls) * double(entry.aloneNs) *
                 double(link.contentionPermille) / 1000;
      of.beside += double(entry.calls) * double(entry.besideMeanNs);
      of.holdsMultiprocessors |= machine::holdsMultiprocessors(link.transport);
    }
  double found = 0, expected = 0;
  for (const MeasuredKernel &entry : measuredKernels) {
    if (!entry.sustainedNs)
      continue;
    const double crowded =
        double(crowdedPermille(entry.kernel, entry.signature)) / 1000;
    auto expect = [&](const Beside &of, int64_t ns) {
      double speed = 1 - of.rate();
      if (of.holdsMultiprocessors)
        speed = std::min(speed, 1 / (1 + crowded));
      expected += double(entry.calls) * double(ns) * (1 - speed);
    };
    expect(gathers, entry.besideGathersNs);
    expect(others, entry.besideReductionsNs);
    found +=
        double(entry.calls) * double(entry.besideMeanNs - entry.sustainedNs);
  }
  // At its power limit a GPU without collectives only draws more: what they
  // cost a step that nobody watches is the most that they can take.
  if (withoutCollectivesNs && untimedNs)
    found = std::min(found, double(untimedNs - withoutCollectivesNs));
  constexpr double kMost = 4;
  if (expected > 0)
    contentionScale = std::clamp(found / expected, 0.0, kMost);
}

int64_t Profile::crowdedPermille(std::string_view kernel,
                                 std::string_view signature) const {
  if (!ctaReserve || ctaReserve >= multiprocessors)
    return 0;
  std::optional<CallShape> shape = CallShape::parse(signature);
  auto product = shape ? shape->product(kernel) : std::nullopt;
  if (!product)
    return 0;
  auto parts = [](int64_t size, int64_t part) {
    return size / part + (size % part != 0);
  };
  double least = 0, crowded = 0;
  for (const Tile &tile : tiles) {
    const int64_t count =
        parts(product->first, tile.rows) * parts(product->second, tile.columns);
    const double one = double(tile.rows) * double(tile.columns);
    const double ns = one * double(parts(count, multiprocessors));
    if (least != 0 && ns >= least)
      continue;
    least = ns;
    crowded = one * double(parts(count, multiprocessors - ctaReserve));
  }
  constexpr double kMost = 1e6; // of what a schedule takes
  return least == 0
             ? 0
             : int64_t(std::min((crowded / least - 1) * 1000 * contentionScale,
                                kMost));
}

} // namespace gtp::machine
