//===- Memory.cpp - What the plan claims of its memory --------------------===//
//
// The issue order is one execution that happens-before allows, so buffers that
// are live at once in it are live at once in some execution: their bytes are a
// lower bound of the largest such set, and the arena, where these buffers lie
// apart, is an upper bound.
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

static uint64_t roundUp(uint64_t value, uint64_t unit) {
  return value + (unit - value % unit) % unit;
}

static uint64_t roundedSize(const pb::Buffer &buffer) {
  return roundUp(buffer.size(), 256);
}

/// Most bytes of memory 0 live at once in issue order of the program.
static uint64_t liveInIssueOrder(const Context &c) {
  size_t buffers = static_cast<size_t>(c.plan.buffers_size());
  struct Life {
    uint64_t first = UINT64_MAX, last = 0;
  };
  std::vector<Life> lives(buffers);
  uint64_t time = 0;
  for (const RegionInfo &region : c.regions) {
    uint64_t regionBegin = time;
    uint64_t regionEnd = time + region.operations.size();
    bool repeats = region.region->repeat() > 1;
    std::vector<bool> fresh(buffers);
    for (const OperationInfo &info : region.operations) {
      for (const OperationInfo::Acquired &acquired : info.acquired)
        fresh[acquired.buffer] = acquired.everyIteration;
      for (const Touch &touch : info.touches) {
        Life &life = lives[touch.buffer()];
        // What lives across iterations lives through all of each.
        bool carried = repeats && !fresh[touch.buffer()];
        life.first = std::min(life.first, carried ? regionBegin : time);
        life.last = std::max(life.last, carried ? regionEnd - 1 : time);
      }
      ++time;
    }
  }

  // Unsigned sums wrap on the way and are right at every step: the structure
  // rule bounds sizes and numbers so that what is live fits.
  std::vector<uint64_t> change(time + 1);
  uint64_t fixed = 0, peak = 0;
  for (size_t i = 0; i < buffers; ++i) {
    const pb::Buffer &buffer = c.buffer(static_cast<uint32_t>(i));
    if (buffer.memory() != 0)
      continue;
    if (buffer.kind() == pb::Buffer::PERSISTENT) {
      fixed += roundedSize(buffer);
    } else if (lives[i].first != UINT64_MAX) {
      change[lives[i].first] += roundedSize(buffer);
      change[lives[i].last + 1] -= roundedSize(buffer);
    }
  }
  uint64_t live = 0;
  for (uint64_t delta : change) {
    live += delta;
    peak = std::max(peak, live);
  }
  return fixed + peak;
}

void check::countLive(Context &c) {
  c.report.liveBytes = std::max(c.report.liveBytes, liveInIssueOrder(c));
}

void check::checkMemory(Context &c) {
  const pb::Claims &claims = c.plan.claims();
  auto expect = [&](const char *what, uint64_t claimed, uint64_t found) {
    if (claimed != found)
      c.fail("peak", std::string("the plan claims ") + what + " of " +
                         std::to_string(claimed) + " bytes, found " +
                         std::to_string(found));
  };
  uint64_t persistent = 0, end = 0;
  for (const pb::Buffer &buffer : c.plan.buffers()) {
    if (buffer.kind() == pb::Buffer::PERSISTENT)
      persistent += roundedSize(buffer);
    if (buffer.memory() == 0)
      end = std::max(end, buffer.offset() + buffer.size());
  }
  const pb::MemoryRegion &arena = c.plan.memory(0);
  expect("persistent state", claims.persistent_bytes(), persistent);
  expect("an arena", claims.arena_bytes(), arena.size());
  if (uint64_t needed = roundUp(end, arena.alignment()); needed != arena.size())
    c.fail("peak", "the arena has " + std::to_string(arena.size()) +
                       " bytes, its buffers need " + std::to_string(needed));

  if (claims.max_live_bytes() < c.report.liveBytes ||
      claims.max_live_bytes() > arena.size())
    c.fail("peak", "the plan claims that at most " +
                       std::to_string(claims.max_live_bytes()) +
                       " bytes are live at once, found " +
                       std::to_string(c.report.liveBytes) +
                       " live in issue order and an arena of " +
                       std::to_string(arena.size()));
  if (claims.gathered_peak_bytes() > arena.size())
    c.fail("peak", "the plan claims " +
                       std::to_string(claims.gathered_peak_bytes()) +
                       " gathered bytes at once in an arena of " +
                       std::to_string(arena.size()));
  if (claims.budget_bytes() != 0 &&
      (claims.overhead_bytes() > claims.budget_bytes() ||
       arena.size() > claims.budget_bytes() - claims.overhead_bytes()))
    c.fail("budget", "arena of " + std::to_string(arena.size()) +
                         " bytes and overhead of " +
                         std::to_string(claims.overhead_bytes()) +
                         " exceed the budget of " +
                         std::to_string(claims.budget_bytes()));
}
