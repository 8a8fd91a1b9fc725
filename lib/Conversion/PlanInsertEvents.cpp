//===- PlanInsertEvents.cpp - The fewest events that keep the order -------===//

#include "gtp/Analysis/PlanOrder.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanStats.h"
#include "gtp/Conversion/PlanToProto.h"

namespace gtp {
#define GEN_PASS_DEF_PLANINSERTEVENTSPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

namespace {

struct PlanInsertEventsPass
    : public gtp::impl::PlanInsertEventsPassBase<PlanInsertEventsPass> {
  void runOnOperation() override {
    ProgramOp program = findProgram(getOperation());
    if (!program)
      return signalPassFailure();
    unsigned streams = numStreams(program);
    // Statistics are the training step's.
    planning::EventProblem::Counts naive, least, ignored;
    for (Block *block : programBlocks(program))
      for (auto region : block->getOps<RegionOp>()) {
        bool first = block == &program.getBody().front();
        if (failed(insertEvents(region, streams, first ? naive : ignored,
                                first ? least : ignored)))
          return signalPassFailure();
      }
    setStat(program, "events", least.events);
    setStat(program, "waits", least.waits);
    setStat(program, "naive_events", naive.events);
    setStat(program, "naive_waits", naive.waits);
  }

private:
  LogicalResult insertEvents(RegionOp region, unsigned streams,
                             planning::EventProblem::Counts &naive,
                             planning::EventProblem::Counts &least);
};

} // namespace

LogicalResult
PlanInsertEventsPass::insertEvents(RegionOp region, unsigned streams,
                                   planning::EventProblem::Counts &naive,
                                   planning::EventProblem::Counts &least) {
  planning::EventProblem problem(orderOf(region, streams));
  if (Status status = problem.check(); !status.isOk())
    return emitError(region.getLoc())
           << "plan-insert-events: no event problem: " << status.message();
  planning::EventProblem::Solution solution = problem.solve();
  if (Status status = problem.verify(solution); !status.isOk())
    return emitError(region.getLoc())
           << "plan-insert-events: wrong events: " << status.message();
  planning::EventProblem::Counts counts = problem.naiveCounts();
  naive.events += counts.events;
  naive.waits += counts.waits;
  counts = planning::EventProblem::counts(solution);
  least.events += counts.events;
  least.waits += counts.waits;

  std::vector<bool> recorded(solution.waits.size());
  for (const auto &waits : solution.waits)
    for (planning::OpIndex op : waits)
      recorded[op] = true;
  std::vector<int64_t> eventOf(solution.waits.size());
  int64_t events = 0;
  SmallVector<int64_t> waits;
  size_t index = 0;
  for (auto step : region.getOps<StepOpInterface>()) {
    waits.clear();
    for (planning::OpIndex op : solution.waits[index])
      waits.push_back(eventOf[op]);
    step.getAfterMutable().clear();
    step.setWaits(waits);
    step.setEvent(std::nullopt);
    if (recorded[index]) {
      eventOf[index] = events;
      step.setEvent(events++);
    }
    ++index;
  }
  region.setEvents(events);
  return success();
}
