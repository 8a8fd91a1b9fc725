//===- PlanOrder.cpp - Happens-before and lifetimes of a plan -------------===//

#include "gtp/Analysis/PlanOrder.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

unsigned gtp::numStreams(ProgramOp program) {
  auto streams = program.getOps<StreamOp>();
  return std::distance(streams.begin(), streams.end());
}

planning::OrderGraph gtp::orderOf(RegionOp region, unsigned numStreams) {
  planning::OrderGraph order(numStreams);
  DenseMap<Value, planning::OpIndex> indices;
  std::vector<planning::OpIndex> recorders(region.getEvents());
  std::vector<planning::OpIndex> after;
  for (auto step : region.getOps<StepOpInterface>()) {
    after.clear();
    for (Value token : step.getAfter())
      after.push_back(indices.lookup(token));
    for (int64_t event : step.getWaits())
      after.push_back(recorders[event]);
    llvm::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    planning::OpIndex index = order.addOp(step.getStream(), after);
    indices[step.getToken()] = index;
    if (std::optional<int64_t> event = step.getEvent())
      recorders[*event] = index;
  }
  return order;
}

PlanLifetimes gtp::lifetimesOf(ProgramOp program) {
  PlanLifetimes lifetimes;
  DenseMap<Value, uint32_t> indices;
  // Programs run one after another, each to its end: as regions of one list
  // their own buffers may share memory, and those that both touch may not.
  SmallVector<BufferOp> buffers;
  SmallVector<RegionOp> regions;
  for (Block *block : programBlocks(program)) {
    llvm::append_range(buffers, block->getOps<BufferOp>());
    llvm::append_range(regions, block->getOps<RegionOp>());
  }
  for (BufferOp op : buffers) {
    indices[op.getResult()] = lifetimes.buffers.size();
    lifetimes.buffers.push_back(op);
    planning::MemoryBuffer &buffer = lifetimes.problem.buffers.emplace_back();
    buffer.size = op.getSize();
    buffer.persistent = op.getKind() == BufferKind::Persistent;
    // The runtime may touch them between steps at any time.
    bool isIo =
        op.getKind() == BufferKind::Input || op.getKind() == BufferKind::Output;
    buffer.liveIn = buffer.liveOut = isIo;
    buffer.name = op.getName().str();
    llvm::replace(buffer.name, ' ', '_');
  }
  lifetimes.gathered.assign(lifetimes.buffers.size(), false);

  unsigned streams = numStreams(program);
  for (RegionOp region : regions) {
    uint32_t regionIndex = lifetimes.problem.regions.size();
    lifetimes.problem.regions.push_back(
        {orderOf(region, streams), region.getRepeat() > 1});
    planning::OpIndex index = 0;
    for (auto step : region.getOps<StepOpInterface>()) {
      for (auto [i, pair] :
           llvm::enumerate(llvm::zip(step.getBuffers(), step.getViews()))) {
        auto [value, view] = pair;
        uint32_t position = indices.lookup(value);
        planning::MemoryBuffer &buffer = lifetimes.problem.buffers[position];
        if (buffer.accesses.empty() ||
            buffer.accesses.back().region != regionIndex)
          buffer.accesses.push_back({regionIndex, {}});
        std::vector<planning::OpIndex> &ops = buffer.accesses.back().ops;
        if (ops.empty() || ops.back() != index)
          ops.push_back(index);
        if (region.getRepeat() > 1 && cast<ViewAttr>(view).getAccumulate())
          buffer.carried = true;
        auto collective = dyn_cast<CollectiveOp>(*step);
        if (collective && collective.getKind() == CollectiveKind::AllGather &&
            collective.getParameterAttr() && i >= collective.getMembers() &&
            i < 2 * collective.getMembers())
          lifetimes.gathered[position] = true;
      }
      ++index;
    }
  }
  return lifetimes;
}
