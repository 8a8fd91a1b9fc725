//===- HappensBefore.cpp - Order of one region's operations ---------------===//

#include "HappensBefore.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

HappensBefore::HappensBefore(const RegionInfo &region, int streams,
                             Variant variant)
    : width(static_cast<size_t>(streams)), stream(region.operations.size()),
      position(region.operations.size()),
      clocks(region.operations.size() * width) {
  std::vector<std::vector<uint32_t>> now(width, std::vector<uint32_t>(width));
  std::vector<size_t> recorder(region.region->events());
  for (size_t i = 0; i < region.operations.size(); ++i) {
    const pb::Operation &operation = *region.operations[i].operation;
    stream[i] = operation.stream();
    if (!runsIn(operation.when(), variant))
      continue;
    std::vector<uint32_t> &clock = now[operation.stream()];
    for (const pb::Wait &wait : operation.waits())
      for (size_t s = 0; s < width; ++s)
        clock[s] =
            std::max(clock[s], clocks[recorder[wait.event()] * width + s]);
    position[i] = ++clock[operation.stream()];
    std::copy(clock.begin(), clock.end(),
              clocks.begin() + static_cast<std::ptrdiff_t>(i * width));
    if (operation.event_plus1())
      recorder[operation.event_plus1() - 1] = i;
  }
}
