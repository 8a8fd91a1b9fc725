//===- Memory.cpp - The memory problem's check and verify -----------------===//

#include "gtp/Planning/Memory.h"

#include <algorithm>

namespace gtp::planning {

static std::string describe(const MemoryProblem &problem, uint32_t buffer) {
  const std::string &name = problem.buffers[buffer].name;
  return "buffer " + std::to_string(buffer) +
         (name.empty() ? "" : " (" + name + ")");
}

Status MemoryProblem::check() const {
  uint64_t total = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const MemoryBuffer &buffer = buffers[i];
    std::string what = describe(*this, i);
    constexpr uint64_t kLargest = uint64_t(1) << 60;
    if (buffer.size > kLargest || (total += alignBytes(buffer.size)) > kLargest)
      return Status::error(what + ": sizes sum up to more than 2^60 bytes");
    if (buffer.accesses.empty() && !buffer.persistent && !buffer.liveIn &&
        !buffer.liveOut)
      return Status::error(what + " is accessed by no operation; drop it, or "
                                  "mark it as live into or out of the step");
    bool repeats = false;
    for (size_t j = 0; j < buffer.accesses.size(); ++j) {
      const MemoryAccess &access = buffer.accesses[j];
      if (access.region >= regions.size())
        return Status::error(what + " is accessed in region " +
                             std::to_string(access.region) + " of " +
                             std::to_string(regions.size()));
      if (j && access.region <= buffer.accesses[j - 1].region)
        return Status::error(what + ": regions of accesses are not ascending");
      if (access.ops.empty())
        return Status::error(what + ": no operation in region " +
                             std::to_string(access.region));
      for (size_t k = 0; k < access.ops.size(); ++k) {
        if (access.ops[k] >= regions[access.region].order.size())
          return Status::error(
              what + " is accessed by operation " +
              std::to_string(access.ops[k]) + " of region " +
              std::to_string(access.region) + ", which has " +
              std::to_string(regions[access.region].order.size()));
        if (k && access.ops[k] <= access.ops[k - 1])
          return Status::error(what + ": operations are not ascending");
      }
      repeats |= regions[access.region].repeated;
    }
    if (buffer.carried && !repeats)
      return Status::error(what + " is carried from iteration to iteration, "
                                  "but no repeated region accesses it");
  }
  return Status::ok();
}

uint64_t MemoryProblem::persistentBytes() const {
  uint64_t bytes = 0;
  for (const MemoryBuffer &buffer : buffers)
    if (buffer.persistent)
      bytes += alignBytes(buffer.size);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Order of two buffers from the accesses themselves. Nothing here is shared
// with the solvers.
//===----------------------------------------------------------------------===//

namespace {
/// Where a buffer's memory is held, as regions and accesses.
struct Extent {
  uint32_t first = 0, last = 0;
  bool wholeFirst = false, wholeLast = false; ///< of those regions
  std::vector<OpIndex> firstOps, lastOps;     ///< one a stream
};
} // namespace

static Extent extentOf(const MemoryProblem &problem, uint32_t index) {
  const MemoryBuffer &buffer = problem.buffers[index];
  Extent extent;
  extent.last = problem.regions.empty() ? 0 : problem.regions.size() - 1;
  bool unknown = buffer.persistent || buffer.accesses.empty();
  bool before = buffer.liveIn || unknown, past = buffer.liveOut || unknown;
  if (!before)
    extent.first = buffer.accesses.front().region;
  if (!past)
    extent.last = buffer.accesses.back().region;
  bool crosses =
      before || past || extent.first != extent.last || buffer.carried;
  auto repeats = [&](uint32_t region) {
    return region < problem.regions.size() && problem.regions[region].repeated;
  };
  extent.wholeFirst = before || (crosses && repeats(extent.first));
  extent.wholeLast = past || (crosses && repeats(extent.last));
  if (unknown)
    return extent;

  // Stream order makes the other accesses of a stream follow from these.
  const MemoryAccess &entry = buffer.accesses.front();
  const MemoryAccess &exit = buffer.accesses.back();
  std::vector<char> seen;
  seen.assign(problem.regions[entry.region].order.numStreams(), 0);
  for (OpIndex op : entry.ops) {
    char &mark = seen[problem.regions[entry.region].order.stream(op)];
    if (!mark)
      extent.firstOps.push_back(op);
    mark = 1;
  }
  seen.assign(problem.regions[exit.region].order.numStreams(), 0);
  for (size_t i = exit.ops.size(); i-- > 0;) {
    char &mark = seen[problem.regions[exit.region].order.stream(exit.ops[i])];
    if (!mark)
      extent.lastOps.push_back(exit.ops[i]);
    mark = 1;
  }
  return extent;
}

static bool extentsOrdered(const MemoryProblem &problem, const Extent &a,
                           const Extent &b) {
  if (a.last != b.first)
    return a.last < b.first;
  if (a.wholeLast || b.wholeFirst)
    return false;
  const OrderGraph &order = problem.regions[a.last].order;
  for (OpIndex x : a.lastOps)
    for (OpIndex y : b.firstOps)
      if (!order.happensBefore(x, y))
        return false;
  return true;
}

bool MemoryProblem::ordered(uint32_t a, uint32_t b) const {
  return extentsOrdered(*this, extentOf(*this, a), extentOf(*this, b));
}

Status MemoryProblem::verify(const Solution &solution) const {
  if (solution.offsets.size() != buffers.size())
    return Status::error(
        "solution has " + std::to_string(solution.offsets.size()) +
        " offsets, expected " + std::to_string(buffers.size()));
  std::vector<Extent> extents;
  uint64_t persistentEnd = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    extents.push_back(extentOf(*this, i));
    uint64_t offset = solution.offsets[i], size = buffers[i].size;
    std::string what = describe(*this, i);
    if (offset % kBufferAlignment)
      return Status::error(what + " is at offset " + std::to_string(offset) +
                           ", not a multiple of " +
                           std::to_string(kBufferAlignment));
    if (offset > solution.arenaBytes || size > solution.arenaBytes - offset)
      return Status::error(what + " at offset " + std::to_string(offset) +
                           " of size " + std::to_string(size) +
                           " leaves the arena of " +
                           std::to_string(solution.arenaBytes) + " bytes");
    if (!buffers[i].persistent)
      continue;
    if (offset != persistentEnd)
      return Status::error(what + " is persistent and at offset " +
                           std::to_string(offset) + ", expected " +
                           std::to_string(persistentEnd) +
                           ": persistent buffers come first, in order");
    persistentEnd += alignBytes(size);
  }

  std::vector<uint32_t> byOffset;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size)
      byOffset.push_back(i);
  std::sort(byOffset.begin(), byOffset.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(solution.offsets[a], a) <
           std::pair(solution.offsets[b], b);
  });
  for (size_t i = 0; i < byOffset.size(); ++i) {
    uint32_t a = byOffset[i];
    uint64_t end = solution.offsets[a] + buffers[a].size;
    for (size_t j = i + 1; j < byOffset.size(); ++j) {
      uint32_t b = byOffset[j];
      if (solution.offsets[b] >= end)
        break;
      if (!extentsOrdered(*this, extents[a], extents[b]) &&
          !extentsOrdered(*this, extents[b], extents[a]))
        return Status::error(describe(*this, a) + " and " + describe(*this, b) +
                             " share offset " +
                             std::to_string(solution.offsets[b]) +
                             ", and neither's accesses all happen before the "
                             "other's");
    }
  }

  uint64_t live = 0;
  for (size_t i = 0; i < solution.maxLiveSet.size(); ++i) {
    uint32_t a = solution.maxLiveSet[i];
    if (a >= buffers.size() || (i && a <= solution.maxLiveSet[i - 1]))
      return Status::error("the max live set is not ascending buffers");
    live += alignBytes(buffers[a].size);
    for (size_t j = 0; j < i; ++j) {
      uint32_t b = solution.maxLiveSet[j];
      if (extentsOrdered(*this, extents[a], extents[b]) ||
          extentsOrdered(*this, extents[b], extents[a]))
        return Status::error(describe(*this, b) + " and " + describe(*this, a) +
                             " of the max live set are never live together");
    }
  }
  if (live != solution.maxLiveBytes)
    return Status::error("the max live set has " + std::to_string(live) +
                         " bytes, not the claimed " +
                         std::to_string(solution.maxLiveBytes));
  if (live > solution.arenaBytes)
    return Status::error("an arena of " + std::to_string(solution.arenaBytes) +
                         " bytes cannot hold " + std::to_string(live) +
                         " live bytes");
  return Status::ok();
}

} // namespace gtp::planning
