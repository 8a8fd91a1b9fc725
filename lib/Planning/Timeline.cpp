//===- Timeline.cpp - Plays a schedule ------------------------------------===//
//
// Three streams that wait for each other. Between two events all speeds are
// constant. Work is counted in 2^-20 ns, so the result is the same on every
// machine.
//
//===----------------------------------------------------------------------===//

#include "TimelineModel.h"

#include "gtp/Planning/SharedSpeed.h"

#include <algorithm>

namespace gtp::planning {

namespace {

constexpr int64_t kOne = SharedSpeed::kAlone;

/// One stream's operation at work.
struct Work {
  bool active = false;
  int64_t remaining = 0, speed = 0;

  int64_t timeLeft() const { return (remaining + speed - 1) / speed; }
  void advance(int64_t ns) {
    // A finished operation may overshoot by less than a nanosecond.
    remaining = ns > remaining / speed ? 0 : remaining - ns * speed;
  }
};

/// A stream of collectives.
struct TransferStream {
  const std::vector<uint32_t> &order;
  std::vector<Timeline::Span> &spans;
  size_t done;
  Work work;
};

} // namespace

Timeline simulate(const ScheduleProblem &problem, const Schedule &schedule,
                  const TimelineModel &model) {
  size_t numOps = problem.ops.size();
  Timeline timeline;
  timeline.compute.resize(numOps);
  timeline.gathers.resize(problem.gathers.size());
  timeline.reductions.resize(problem.reductions.size());
  std::vector<uint32_t> gatherOrder = problem.gatherOrder();
  std::vector<uint32_t> reductionOrder = problem.reductionOrder();

  // Before operation i, so many of each stream must have completed.
  std::vector<size_t> gathersNeeded(numOps + 1), reductionsNeeded(numOps + 1);
  for (size_t i = 0; i < gatherOrder.size(); ++i)
    gathersNeeded[problem.gathers[gatherOrder[i]].firstUse] = i + 1;
  for (size_t i = 0; i < reductionOrder.size(); ++i) {
    size_t &needed = reductionsNeeded[schedule.releases[reductionOrder[i]]];
    needed = std::max(needed, i + 1);
  }

  TransferStream gathers{gatherOrder, timeline.gathers, 0, {}};
  TransferStream reductions{reductionOrder, timeline.reductions, 0, {}};
  auto costOf = [&](const TransferStream &stream) -> const TransferCost & {
    uint32_t index = stream.order[stream.done];
    return &stream == &gathers ? problem.gathers[index].cost
                               : problem.reductions[index].cost;
  };
  auto duration = [&](const TransferStream &stream) {
    int64_t ns = costOf(stream).durationNs;
    // Multiplied by parts, since durations reach 10^12.
    return ns / 100 * model.transferPercent +
           ns % 100 * model.transferPercent / 100;
  };

  int64_t now = 0, busy = 0, total = 0;
  size_t opsDone = 0, gathersAwaited = 0, reductionsAwaited = 0;
  Work compute;
  for (;;) {
    // Start what can start; what has no duration ends at once.
    bool progress = true;
    while (progress) {
      progress = false;
      auto step = [&](Work &work, bool ready, int64_t ns, Timeline::Span &span,
                      size_t &done) {
        if (!work.active && ready) {
          work = {true, ns * kOne, kOne};
          span.start = now;
        }
        if (work.active && work.remaining == 0) {
          work.active = false;
          span.end = now;
          ++done;
          progress = true;
        }
      };
      if (opsDone < numOps) {
        gathersAwaited = std::max(gathersAwaited, gathersNeeded[opsDone]);
        reductionsAwaited =
            std::max(reductionsAwaited, reductionsNeeded[opsDone]);
        bool ready = gathers.done >= gathersAwaited &&
                     reductions.done >= reductionsAwaited;
        int64_t ns = problem.ops[opsDone].durationNs;
        if (!compute.active && ready)
          total += ns;
        step(compute, ready, ns, timeline.compute[opsDone], opsDone);
      }
      if (gathers.done < gatherOrder.size()) {
        uint32_t index = gatherOrder[gathers.done];
        bool ready = schedule.triggers[index] < int64_t(opsDone);
        step(gathers.work, ready, duration(gathers), gathers.spans[index],
             gathers.done);
      }
      if (reductions.done < reductionOrder.size()) {
        uint32_t index = reductionOrder[reductions.done];
        bool ready = problem.reductions[index].producer < opsDone;
        step(reductions.work, ready, duration(reductions),
             reductions.spans[index], reductions.done);
      }
    }
    if (!compute.active && !gathers.work.active && !reductions.work.active)
      break; // all done; a legal schedule never gets stuck

    SharedSpeed speeds(gathers.work.active && reductions.work.active,
                       compute.active, problem.sharedLinkPermille);
    for (TransferStream *stream : {&gathers, &reductions})
      if (stream->work.active)
        stream->work.speed =
            model.contention ? speeds.addCollective(costOf(*stream)) : kOne;
    if (compute.active)
      compute.speed = speeds.ofCompute(problem.ops[opsDone].crowdedPermille);

    int64_t next = INT64_MAX;
    for (Work *work : {&compute, &gathers.work, &reductions.work})
      if (work->active)
        next = std::min(next, work->timeLeft());
    for (Work *work : {&compute, &gathers.work, &reductions.work})
      if (work->active)
        work->advance(next);
    if (compute.active)
      busy += next;
    now += next;
  }
  timeline.stepNs = now;
  timeline.stallNs = now - busy;
  timeline.contentionNs = busy - total;
  return timeline;
}

} // namespace gtp::planning
