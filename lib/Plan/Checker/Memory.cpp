//===- Memory.cpp - What the plan claims of its memory --------------------===//

#include "LiveBytes.h"

#include "gtp/Support/RoundUp.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

/// Programs never run together, so the largest of each counts.
void check::countLive(Context &c) {
  LivePeaks peaks = findLivePeaks(c);
  c.report.liveBytes = std::max(c.report.liveBytes, peaks.all);
  c.report.gatheredBytes = std::max(c.report.gatheredBytes, peaks.gathered);
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

  expect("a largest set of live buffers", claims.max_live_bytes(),
         c.report.liveBytes);
  expect("a largest set of gathered weights", claims.gathered_peak_bytes(),
         c.report.gatheredBytes);
  if (claims.budget_bytes() != 0 &&
      (claims.overhead_bytes() > claims.budget_bytes() ||
       arena.size() > claims.budget_bytes() - claims.overhead_bytes()))
    c.fail("budget", "arena of " + std::to_string(arena.size()) +
                         " bytes and overhead of " +
                         std::to_string(claims.overhead_bytes()) +
                         " exceed the budget of " +
                         std::to_string(claims.budget_bytes()));
}
