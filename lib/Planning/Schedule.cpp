//===- Schedule.cpp - The schedule problem's check, bounds and verify -----===//

#include "SchedulePoints.h"
#include "TimelineModel.h"

#include <numeric>

namespace gtp::planning {

static std::string itemName(const char *kind, size_t index,
                            const std::string &name) {
  return std::string(kind) + " " + std::to_string(index) +
         (name.empty() ? "" : " (" + name + ")");
}

static Status checkCost(const std::string &what, const TransferCost &cost) {
  constexpr int64_t kLongest = 1'000'000'000'000;
  if (cost.durationNs < 0 || cost.durationNs > kLongest ||
      cost.contentionNs < 0 || cost.contentionNs > kLongest)
    return Status::error(what + ": times must be from 0 to 1e12 ns");
  if (cost.slowdownPermille < 0 || cost.slowdownPermille > 1'000'000)
    return Status::error(what +
                         ": slowdown must be from 0 to 1000000 permille");
  return Status::ok();
}

Status ScheduleProblem::check() const {
  size_t numOps = ops.size();
  int64_t bytes = 0;
  auto addBytes = [&](int64_t more) {
    constexpr int64_t kLargest = int64_t(1) << 60;
    return more >= 0 && more <= kLargest && (bytes += more) <= kLargest;
  };
  for (size_t i = 0; i < numOps; ++i)
    if (ops[i].durationNs < 0 || ops[i].durationNs > 1'000'000'000'000)
      return Status::error(itemName("operation", i, ops[i].name) +
                           ": duration must be from 0 to 1e12 ns");
  for (size_t i = 0; i < numOps; ++i)
    if (ops[i].crowdedPermille < 0 || ops[i].crowdedPermille > 1'000'000)
      return Status::error(itemName("operation", i, ops[i].name) +
                           ": crowded must be from 0 to 1000000 permille");
  for (size_t i = 0; i < gathers.size(); ++i) {
    const Gather &gather = gathers[i];
    std::string what = itemName("gather", i, gather.name);
    GTP_RETURN_IF_ERROR(checkCost(what, gather.cost));
    if (!addBytes(gather.bytes))
      return Status::error(what + ": bytes are negative or too many");
    if (gather.firstUse > gather.lastUse || gather.lastUse >= numOps)
      return Status::error(what + " is used from operation " +
                           std::to_string(gather.firstUse) + " to " +
                           std::to_string(gather.lastUse) + " of " +
                           std::to_string(numOps));
    if (gather.pinned &&
        (*gather.pinned < -1 || *gather.pinned >= int64_t(gather.firstUse)))
      return Status::error(what + " is pinned to operation " +
                           std::to_string(*gather.pinned) +
                           ", expected -1 (the start) or one before its first "
                           "use " +
                           std::to_string(gather.firstUse));
    if (gather.pinned && gather.automatic)
      return Status::error(what + " is pinned and automatic");
  }
  for (size_t i = 0; i < reductions.size(); ++i) {
    const Reduction &reduction = reductions[i];
    std::string what = itemName("reduction", i, reduction.name);
    GTP_RETURN_IF_ERROR(checkCost(what, reduction.cost));
    if (!addBytes(reduction.bytes))
      return Status::error(what + ": bytes are negative or too many");
    if (reduction.producer >= reduction.consumer || reduction.consumer > numOps)
      return Status::error(
          what + " is produced by operation " +
          std::to_string(reduction.producer) + " and consumed by " +
          std::to_string(reduction.consumer) + " of " + std::to_string(numOps));
  }
  if (base.points.size() != 2 * numOps + 1)
    return Status::error("base profile has " +
                         std::to_string(base.points.size()) +
                         " points, expected " + std::to_string(2 * numOps + 1));
  for (int64_t point : base.points)
    if (point < 0 || point > int64_t(1) << 60)
      return Status::error("base profile holds " + std::to_string(point) +
                           " bytes");
  if (capBytes < 0)
    return Status::error("cap of " + std::to_string(capBytes) + " bytes");
  if (sharedLinkPermille < 1 || sharedLinkPermille > 1000)
    return Status::error("shared link speed must be from 1 to 1000 permille");
  return Status::ok();
}

std::vector<uint32_t> ScheduleProblem::gatherOrder() const {
  std::vector<uint32_t> order(gathers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(gathers[a].firstUse, a) <
           std::pair(gathers[b].firstUse, b);
  });
  return order;
}

std::vector<uint32_t> ScheduleProblem::reductionOrder() const {
  std::vector<uint32_t> order(reductions.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(reductions[a].producer, a) <
           std::pair(reductions[b].producer, b);
  });
  return order;
}

int64_t ScheduleProblem::triggerAhead(const std::vector<uint32_t> &order,
                                      size_t position,
                                      uint32_t distance) const {
  if (distance > position)
    return -1;
  return int64_t(gathers[order[position - distance]].firstUse) - 1;
}

TriggerBounds triggerBounds(const ScheduleProblem &problem) {
  std::vector<uint32_t> order = problem.gatherOrder();
  TriggerBounds bounds;
  bounds.first.resize(order.size());
  bounds.last.resize(order.size());
  int64_t pinned = -1;
  for (uint32_t index : order) {
    pinned = std::max(pinned, problem.gathers[index].pinned.value_or(-1));
    bounds.first[index] = pinned;
  }
  int64_t next = int64_t(problem.ops.size());
  for (size_t i = order.size(); i-- > 0;) {
    const Gather &gather = problem.gathers[order[i]];
    if (gather.pinned)
      next = bounds.first[order[i]];
    bounds.last[order[i]] = std::min(next, int64_t(gather.firstUse) - 1);
  }
  return bounds;
}

std::vector<int64_t> releaseLimits(const ScheduleProblem &problem) {
  std::vector<uint32_t> order = problem.reductionOrder();
  std::vector<int64_t> limits(order.size());
  int64_t limit = problem.ops.size();
  for (size_t i = order.size(); i-- > 0;) {
    limit = std::min<int64_t>(limit, problem.reductions[order[i]].consumer);
    limits[order[i]] = limit;
  }
  return limits;
}

Timeline ScheduleProblem::simulate(const Schedule &schedule) const {
  return planning::simulate(*this, schedule, TimelineModel());
}

int64_t ScheduleProblem::lowerBoundNs() const {
  // Everything as early as it can be, nothing slowing down anything, memory for
  // all: no schedule of these streams ends sooner.
  Schedule early;
  early.triggers.assign(gathers.size(), -1);
  early.releases = releaseLimits(*this);
  TimelineModel ideal;
  ideal.contention = false;
  int64_t bound = planning::simulate(*this, early, ideal).stepNs;
  // Nor does the link carry more than both directions together may.
  int64_t link = 0;
  for (const Gather &gather : gathers)
    link += gather.cost.durationNs;
  for (const Reduction &reduction : reductions)
    link += reduction.cost.durationNs;
  int64_t together = std::max<int64_t>(1000, 2 * sharedLinkPermille);
  return std::max(bound,
                  link / together * 1000 + link % together * 1000 / together);
}

MinimalMemory ScheduleProblem::minimalMemory() const {
  // Just-in-time triggers, as far as pins allow, and immediate releases hold
  // each buffer over the fewest points at once for all buffers.
  Schedule least;
  least.triggers = triggerBounds(*this).last;
  for (const Reduction &reduction : reductions)
    least.releases.push_back(int64_t(reduction.producer) + 1);
  MemoryCurve curve(*this, least);
  MinimalMemory minimal;
  minimal.point = curve.peakPoint();
  minimal.baseBytes = curve.base[minimal.point];
  minimal.gatheredBytes = curve.gathered[minimal.point];
  minimal.gradientBytes = curve.gradients[minimal.point];
  minimal.bytes = curve.total(minimal.point);
  return minimal;
}

void predict(const ScheduleProblem &problem, Schedule &schedule) {
  Timeline timeline = problem.simulate(schedule);
  schedule.stepNs = timeline.stepNs;
  schedule.stallNs = timeline.stallNs;
  schedule.contentionNs = timeline.contentionNs;
  schedule.computeNs =
      timeline.stepNs - timeline.stallNs - timeline.contentionNs;
  schedule.lowerBoundNs = problem.lowerBoundNs();
  MemoryCurve curve(problem, schedule);
  schedule.peakBytes = curve.total(curve.peakPoint());
  schedule.gatheredPeakBytes =
      *std::max_element(curve.gathered.begin(), curve.gathered.end());
  schedule.gradientPeakBytes =
      *std::max_element(curve.gradients.begin(), curve.gradients.end());
}

Status ScheduleProblem::verify(const Schedule &schedule) const {
  auto number = [](int64_t value) { return std::to_string(value); };
  if (schedule.triggers.size() != gathers.size() ||
      schedule.releases.size() != reductions.size())
    return Status::error("schedule has " + number(schedule.triggers.size()) +
                         " triggers and " + number(schedule.releases.size()) +
                         " releases, expected " + number(gathers.size()) +
                         " and " + number(reductions.size()));
  int64_t previous = -1, pinned = -1;
  for (uint32_t i : gatherOrder()) {
    std::string what = itemName("gather", i, gathers[i].name);
    int64_t trigger = schedule.triggers[i];
    if (trigger < -1 || trigger >= int64_t(gathers[i].firstUse))
      return Status::error(what + " is issued after operation " +
                           number(trigger) + ", but its first use is " +
                           number(gathers[i].firstUse));
    if (trigger < previous)
      return Status::error(
          what + " is issued after operation " + number(trigger) +
          ", before the gather ahead of it on the stream, " + number(previous));
    if (gathers[i].pinned) {
      pinned = std::max(pinned, *gathers[i].pinned);
      if (trigger != pinned)
        return Status::error(what + " is issued after operation " +
                             number(trigger) + ", but it is pinned to " +
                             number(pinned));
    }
    previous = trigger;
  }
  previous = 0;
  for (uint32_t i : reductionOrder()) {
    std::string what = itemName("reduction", i, reductions[i].name);
    int64_t release = schedule.releases[i];
    if (release <= int64_t(reductions[i].producer) ||
        release > int64_t(reductions[i].consumer))
      return Status::error(what + " is awaited before operation " +
                           number(release) + ", expected " +
                           number(int64_t(reductions[i].producer) + 1) +
                           " to " + number(reductions[i].consumer));
    if (release < previous)
      return Status::error(what + " is awaited before operation " +
                           number(release) +
                           ", sooner than the reduction ahead of it on the "
                           "stream, " +
                           number(previous));
    previous = release;
  }

  // Memory, point by point from the definition.
  int64_t peak = 0, gatheredPeak = 0, gradientPeak = 0;
  std::vector<int64_t> deltaGathered(base.points.size() + 1),
      deltaGradients(base.points.size() + 1);
  for (size_t i = 0; i < gathers.size(); ++i) {
    deltaGathered[2 * (schedule.triggers[i] + 1)] += gathers[i].bytes;
    deltaGathered[2 * size_t(gathers[i].lastUse) + 2] -= gathers[i].bytes;
  }
  for (size_t i = 0; i < reductions.size(); ++i) {
    deltaGradients[2 * size_t(reductions[i].producer) + 1] +=
        reductions[i].bytes;
    deltaGradients[2 * schedule.releases[i] + 1] -= reductions[i].bytes;
  }
  int64_t gathered = 0, gradients = 0;
  for (size_t point = 0; point < base.points.size(); ++point) {
    gathered += deltaGathered[point];
    gradients += deltaGradients[point];
    int64_t live = base.points[point] + gathered + gradients;
    if (live > capBytes)
      return Status::error(
          (point % 2 ? "at operation " : "before operation ") +
          number(point / 2) + " " + number(live) + " bytes are live (base " +
          number(base.points[point]) + ", gathered weights " +
          number(gathered) + ", full gradients " + number(gradients) +
          "), above the cap of " + number(capBytes));
    peak = std::max(peak, live);
    gatheredPeak = std::max(gatheredPeak, gathered);
    gradientPeak = std::max(gradientPeak, gradients);
  }

  int64_t compute = 0;
  for (const ComputeOp &op : ops)
    compute += op.durationNs;
  Timeline timeline = simulate(schedule);
  const struct {
    const char *name;
    int64_t claimed, found;
  } claims[] = {
      {"step_ns", schedule.stepNs, timeline.stepNs},
      {"compute_ns", schedule.computeNs, compute},
      {"stall_ns", schedule.stallNs, timeline.stallNs},
      {"contention_ns", schedule.contentionNs, timeline.contentionNs},
      {"lower_bound_ns", schedule.lowerBoundNs, lowerBoundNs()},
      {"peak_bytes", schedule.peakBytes, peak},
      {"gathered_peak_bytes", schedule.gatheredPeakBytes, gatheredPeak},
      {"gradient_peak_bytes", schedule.gradientPeakBytes, gradientPeak},
  };
  for (const auto &claim : claims)
    if (claim.claimed != claim.found)
      return Status::error(std::string(claim.name) + " is claimed as " +
                           number(claim.claimed) + ", found " +
                           number(claim.found));
  if (timeline.stepNs < schedule.lowerBoundNs)
    return Status::error("step of " + number(timeline.stepNs) +
                         " ns is below the lower bound of " +
                         number(schedule.lowerBoundNs) + " ns");
  return Status::ok();
}

} // namespace gtp::planning
