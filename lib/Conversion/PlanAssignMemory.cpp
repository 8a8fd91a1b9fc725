//===- PlanAssignMemory.cpp - Offsets in the arena ------------------------===//

#include "gtp/Analysis/PlanOrder.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanStats.h"
#include "gtp/Conversion/PlanToProto.h"

namespace gtp {
#define GEN_PASS_DEF_PLANASSIGNMEMORYPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

/// Largest number of bytes that gathered weights hold at once.
static int64_t gatheredPeak(const PlanLifetimes &lifetimes) {
  planning::MemoryProblem gathered;
  gathered.regions = lifetimes.problem.regions;
  for (auto [isGathered, buffer] :
       llvm::zip(lifetimes.gathered, lifetimes.problem.buffers))
    if (isGathered)
      gathered.buffers.push_back(buffer);
  return gathered.buffers.empty() ? 0 : gathered.maxLiveBytes();
}

LogicalResult gtp::assignMemory(ProgramOp program,
                                SmallVectorImpl<BufferOp> *peak) {
  PlanLifetimes lifetimes = lifetimesOf(program);
  planning::MemoryProblem &problem = lifetimes.problem;
  for (auto [buffer, entry] : llvm::zip(lifetimes.buffers, problem.buffers))
    if (entry.accesses.empty())
      return buffer.emitOpError("is never touched");
  if (Status status = problem.check(); !status.isOk())
    return emitError(program.getLoc())
           << "has no memory problem: " << status.message();
  planning::MemoryProblem::Solution solution = problem.solve();
  if (Status status = problem.verify(solution); !status.isOk())
    return emitError(program.getLoc())
           << "plan-assign-memory: wrong packing: " << status.message();

  for (auto [buffer, offset] : llvm::zip(lifetimes.buffers, solution.offsets))
    buffer.setOffset(int64_t(offset));
  program.setArena(solution.arenaBytes);
  setClaim(program, "persistent_bytes", problem.persistentBytes());
  setClaim(program, "arena_bytes", solution.arenaBytes);
  setClaim(program, "max_live_bytes", solution.maxLiveBytes);
  setClaim(program, "gathered_peak_bytes", gatheredPeak(lifetimes));
  if (peak)
    for (uint32_t index : solution.maxLiveSet)
      peak->push_back(lifetimes.buffers[index]);
  return success();
}

namespace {
struct PlanAssignMemoryPass
    : public gtp::impl::PlanAssignMemoryPassBase<PlanAssignMemoryPass> {
  void runOnOperation() override {
    ProgramOp program = findProgram(getOperation());
    if (!program || failed(assignMemory(program)))
      signalPassFailure();
  }
};
} // namespace
