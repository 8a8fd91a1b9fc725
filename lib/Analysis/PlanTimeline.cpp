//===- PlanTimeline.cpp - A plan played by its predicted durations --------===//
//
// As in lib/Planning/Timeline.cpp, between two events all speeds are constant;
// by the same rule, here with any number of streams and the waits of a plan.
//
//===----------------------------------------------------------------------===//

#include "gtp/Analysis/PlanTimeline.h"

#include "gtp/Plan/Iteration.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/KernelSignature.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Plan/Transport.h"
#include "gtp/Planning/SharedSpeed.h"
#include "gtp/Support/LowerCase.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

using namespace gtp;
using namespace gtp::plan;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string gtp::operationName(const pb::Plan &plan, const pb::Operation &op) {
  std::string name = "fill";
  if (op.has_kernel())
    name = plan.strings(static_cast<int>(op.kernel().name()));
  else if (op.has_collective())
    name = pb::Collective::Kind_Name(op.collective().kind());
  else if (op.has_copy())
    name = "copy";
  return lowerCase(std::move(name));
}

const std::string &gtp::operationSource(const pb::Plan &plan,
                                        const pb::Operation &op) {
  return plan.strings(static_cast<int>(op.source()));
}

std::string gtp::operationParameter(const pb::Plan &plan,
                                    const pb::Operation &op) {
  uint32_t parameter = op.has_kernel()       ? op.kernel().parameter_plus1()
                       : op.has_collective() ? op.collective().parameter_plus1()
                                             : 0;
  if (!parameter)
    return "";
  return plan.strings(static_cast<int>(
      plan.parameters(static_cast<int>(parameter - 1)).name()));
}

//===----------------------------------------------------------------------===//
// What operations cost each other
//===----------------------------------------------------------------------===//

namespace {

struct Cost {
  double durationNs = 0;
  bool isCollective = false;
  /// Whether it is work that collectives beside it take from. Copies on a
  /// stream of theirs are not: what those cost is in their gathers' contention.
  bool computes = false;
  planning::TransferCost transfer; ///< of a collective that has a price
  /// Of compute, as that of planning::ComputeOp.
  int64_t crowdedPermille = 0;
};

class Player {
public:
  Player(const pb::Plan &plan, const machine::Profile &profile)
      : plan(plan), profile(profile) {}
  PlanTimeline play();

private:
  Cost costOf(const pb::Operation &op) const;
  void playRun(const pb::Region &region, PlanTimeline::Run &run);
  void playMemory(PlanTimeline &timeline) const;

  const pb::Plan &plan;
  const machine::Profile &profile;
};

} // namespace

Cost Player::costOf(const pb::Operation &op) const {
  Cost cost;
  cost.durationNs = op.duration();
  if (op.has_kernel()) {
    const std::string &name =
        plan.strings(static_cast<int>(op.kernel().name()));
    if (const KernelSpec *spec = lookupKernel(name))
      cost.crowdedPermille =
          profile.crowdedPermille(name, signatureOf(*spec, op.kernel()));
  }
  cost.isCollective = op.has_collective();
  cost.computes =
      !cost.isCollective &&
      plan.streams(static_cast<int>(op.stream())).kind() != pb::Stream::COPY;
  if (!cost.isCollective)
    return cost;
  const pb::Collective &c = op.collective();
  const pb::Communicator &communicator =
      plan.communicators(static_cast<int>(c.communicator()));
  machine::CollectiveKind kind = machine::CollectiveKind::AllReduce;
  if (c.kind() == pb::Collective::ALL_GATHER)
    kind = machine::CollectiveKind::AllGather;
  else if (c.kind() == pb::Collective::REDUCE_SCATTER)
    kind = machine::CollectiveKind::ReduceScatter;
  else if (c.kind() == pb::Collective::ALL_TO_ALL)
    kind = machine::CollectiveKind::AllToAll;
  uint64_t bytes = 0;
  const auto &longSide =
      c.kind() == pb::Collective::ALL_GATHER ? c.destinations() : c.sources();
  pb::DType sent = sentType(CollectiveMeaning::of(c, 1));
  for (const pb::Operand &operand : longSide)
    bytes += elementCount(operand).value_or(0) * dtypeSize(sent);
  // Ranks of the innermost axis are the closest.
  uint32_t innermost = 0;
  for (uint32_t axis : communicator.axes())
    innermost = std::max(innermost, axis);
  int64_t stride = 1;
  for (int i = static_cast<int>(innermost) + 1; i < plan.mesh().axes_size();
       ++i)
    stride *= static_cast<int64_t>(plan.mesh().axes(i).degree());
  machine::Group group =
      profile.group(static_cast<int64_t>(groupSize(plan.mesh(), communicator)),
                    stride, static_cast<int64_t>(rankCount(plan.mesh())));
  StatusOr<machine::CollectivePrice> price =
      profile.collective(kind, static_cast<int64_t>(bytes), group,
                         machine::Transport(static_cast<int>(c.transport())));
  if (price.isOk() && cost.durationNs > 0)
    cost.transfer = {static_cast<int64_t>(cost.durationNs), price->contentionNs,
                     price->slowdownPermille, price->holdsMultiprocessors};
  return cost;
}

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

namespace {

/// A stream that walks its operations.
struct Walker {
  std::vector<uint32_t> operations;
  size_t next = 0;
  bool active = false;
  double remaining = 0, speed = 1;
  int64_t freeSince = 0;
};

} // namespace

void Player::playRun(const pb::Region &region, PlanTimeline::Run &run) {
  size_t count = static_cast<size_t>(region.operations_size());
  std::vector<Walker> streams(static_cast<size_t>(plan.streams_size()));
  std::vector<Cost> costs(count);
  std::vector<int64_t> ends(count, -1);
  // An event of this iteration is the operation that records it; what an
  // iteration before recorded is over.
  std::vector<std::optional<uint32_t>> recorder(region.events());
  for (uint32_t i = 0; i < count; ++i) {
    const pb::Operation &op = region.operations(static_cast<int>(i));
    if (!runsIn(op.when(), run.iteration, region.repeat()))
      continue;
    costs[i] = costOf(op);
    streams[op.stream()].operations.push_back(i);
    if (op.event_plus1())
      recorder[op.event_plus1() - 1] = i;
  }
  for (Walker &stream : streams)
    stream.freeSince = run.start;

  /// The operation it waits for that ends last; `open` when one has not ended.
  auto waitsFor = [&](const pb::Operation &op, bool &open) {
    std::optional<uint32_t> last;
    open = false;
    for (const pb::Wait &wait : op.waits()) {
      if (wait.distance() || !recorder[wait.event()])
        continue;
      uint32_t other = *recorder[wait.event()];
      if (ends[other] < 0)
        open = true;
      else if (!last || ends[other] > ends[*last])
        last = other;
    }
    return last;
  };

  double now = static_cast<double>(run.start);
  auto clock = [&] { return static_cast<int64_t>(std::llround(now)); };
  for (;;) {
    for (bool progress = true; progress;) {
      progress = false;
      for (Walker &stream : streams) {
        if (!stream.active && stream.next < stream.operations.size()) {
          uint32_t index = stream.operations[stream.next];
          const pb::Operation &op = region.operations(static_cast<int>(index));
          bool open;
          std::optional<uint32_t> last = waitsFor(op, open);
          if (open)
            continue;
          PlanTimeline::Span span;
          span.operation = index;
          span.start = clock();
          span.idle = span.start - stream.freeSince;
          if (last && span.idle > 0 && ends[*last] > stream.freeSince)
            span.waitedFor = last;
          run.spans.push_back(span);
          stream.active = true;
          stream.remaining = costs[index].durationNs;
        }
        // What is left of an operation is below what a nanosecond shows.
        if (stream.active && stream.remaining < 1e-6) {
          uint32_t index = stream.operations[stream.next++];
          ends[index] = clock();
          stream.active = false;
          stream.freeSince = ends[index];
          progress = true;
        }
      }
    }
    // Speeds until the next end.
    int transfers = 0;
    bool active = false, computing = false;
    auto costOfActive = [&](const Walker &stream) -> const Cost & {
      return costs[stream.operations[stream.next]];
    };
    for (const Walker &stream : streams) {
      if (!stream.active)
        continue;
      active = true;
      transfers += costOfActive(stream).isCollective;
      computing |= costOfActive(stream).computes;
    }
    if (!active)
      break;
    planning::SharedSpeed speeds(transfers > 1, computing,
                                 profile.sharedLinkPermille);
    auto setSpeed = [](Walker &stream, int64_t speed) {
      stream.speed = static_cast<double>(speed) / planning::SharedSpeed::kAlone;
    };
    for (Walker &stream : streams)
      if (stream.active && costOfActive(stream).isCollective)
        setSpeed(stream, speeds.addCollective(costOfActive(stream).transfer));
    double next = HUGE_VAL;
    for (Walker &stream : streams) {
      if (!stream.active)
        continue;
      const Cost &cost = costOfActive(stream);
      if (cost.computes)
        setSpeed(stream, speeds.ofCompute(cost.crowdedPermille));
      else if (!cost.isCollective)
        stream.speed = 1;
      next = std::min(next, stream.remaining / stream.speed);
    }
    for (Walker &stream : streams)
      if (stream.active)
        stream.remaining -= next * stream.speed;
    now += next;
  }
  run.end = clock();
  for (PlanTimeline::Span &span : run.spans)
    span.end = ends[span.operation];
  std::sort(run.spans.begin(), run.spans.end(),
            [](const PlanTimeline::Span &a, const PlanTimeline::Span &b) {
              return std::pair(a.start, a.operation) <
                     std::pair(b.start, b.operation);
            });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void forEachOperand(const pb::Operation &op,
                           const std::function<void(const pb::Operand &)> &f) {
  for (const pb::Operand &operand : op.kernel().operands())
    f(operand);
  for (const pb::Operand &operand : op.collective().sources())
    f(operand);
  for (const pb::Operand &operand : op.collective().destinations())
    f(operand);
  if (op.collective().has_scratch())
    f(op.collective().scratch());
  if (op.has_copy()) {
    f(op.copy().source());
    f(op.copy().destination());
  }
  if (op.has_fill())
    f(op.fill().destination());
}

void Player::playMemory(PlanTimeline &timeline) const {
  const pb::Program &program = plan.programs(0);
  // A buffer that one region alone touches, and that no iteration leaves to
  // the next, lives in each run anew.
  std::vector<int> region(static_cast<size_t>(plan.buffers_size()), -1);
  std::vector<bool> across(static_cast<size_t>(plan.buffers_size()));
  for (int r = 0; r < program.regions_size(); ++r)
    for (const pb::Operation &op : program.regions(r).operations())
      forEachOperand(op, [&](const pb::Operand &operand) {
        int &known = region[operand.buffer()];
        bool carried =
            program.regions(r).repeat() > 1 &&
            (operand.accumulate() || op.when() != pb::Operation::ALWAYS);
        if ((known >= 0 && known != r) || carried)
          across[operand.buffer()] = true;
        known = r;
      });
  struct Life {
    int64_t start, end;
  };
  std::map<std::pair<uint32_t, int>, Life> lives; // of a buffer, in a run
  for (size_t r = 0; r < timeline.runs.size(); ++r) {
    const PlanTimeline::Run &run = timeline.runs[r];
    for (const PlanTimeline::Span &span : run.spans)
      forEachOperand(program.regions(static_cast<int>(run.region))
                         .operations(static_cast<int>(span.operation)),
                     [&](const pb::Operand &operand) {
                       uint32_t buffer = operand.buffer();
                       if (plan.buffers(static_cast<int>(buffer)).kind() !=
                           pb::Buffer::TRANSIENT)
                         return;
                       int key = across[buffer] ? -1 : static_cast<int>(r);
                       auto [life, isNew] = lives.try_emplace(
                           {buffer, key}, Life{span.start, span.end});
                       life->second.start =
                           std::min(life->second.start, span.start);
                       life->second.end = std::max(life->second.end, span.end);
                     });
  }
  std::map<int64_t, int64_t> changes;
  for (const auto &[key, life] : lives) {
    auto size =
        static_cast<int64_t>(plan.buffers(static_cast<int>(key.first)).size());
    changes[life.start] += size;
    changes[life.end] -= size;
  }
  int64_t bytes = 0;
  for (auto [time, change] : changes)
    timeline.memory.push_back({time, bytes += change});
}

PlanTimeline Player::play() {
  PlanTimeline timeline;
  const pb::Program &program = plan.programs(0);
  int64_t now = 0;
  for (int r = 0; r < program.regions_size(); ++r) {
    const pb::Region &region = program.regions(r);
    bool variants =
        std::any_of(region.operations().begin(), region.operations().end(),
                    [](const pb::Operation &op) {
                      return op.when() != pb::Operation::ALWAYS;
                    });
    uint64_t repeat = std::max<uint64_t>(region.repeat(), 1);
    auto add = [&](uint64_t iteration, uint64_t alike) {
      PlanTimeline::Run run;
      run.region = static_cast<uint32_t>(r);
      run.iteration = iteration;
      run.alike = alike;
      run.start = now;
      playRun(region, run);
      now = run.end;
      timeline.stepNs += (run.end - run.start) * static_cast<int64_t>(alike);
      timeline.runs.push_back(std::move(run));
    };
    if (!variants || repeat == 1) {
      add(0, repeat);
      continue;
    }
    add(0, 1);
    if (repeat > 2)
      add(1, repeat - 2);
    add(repeat - 1, 1);
  }
  timeline.playedNs = now;
  playMemory(timeline);
  return timeline;
}

PlanTimeline gtp::playPlan(const pb::Plan &plan,
                           const machine::Profile &profile) {
  return Player(plan, profile).play();
}
