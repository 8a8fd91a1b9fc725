//===- ScheduleSolver.cpp - As late as is robustly safe, under a cap ------===//
//
// Wishes come from a timeline: on it each gather is placed as late as it can be
// when collectives take longer than priced, each release as soon as it costs
// nothing. Grants come from memory: starting from the schedule that holds
// least, wishes are fulfilled in the order in which the compute stream meets
// them, as far as the cap allows. The first timeline has everything as early as
// possible, so that its stalls are unavoidable ones; later ones are those of
// the result.
//
//===----------------------------------------------------------------------===//

#include "SchedulePoints.h"
#include "TimelineModel.h"

namespace gtp::planning {

namespace {

/// What each gather's trigger and each reduction's release would like to be.
struct Wishes {
  std::vector<int64_t> triggers, releases;
};

class Solver {
public:
  Solver(const ScheduleProblem &problem, const ScheduleOptions &options)
      : problem(problem), options(options), gatherOrder(problem.gatherOrder()),
        reductionOrder(problem.reductionOrder()),
        bounds(triggerBounds(problem)), limits(releaseLimits(problem)),
        window(windowBytes()) {}

  Schedule least() const {
    Schedule schedule;
    schedule.triggers = bounds.last;
    for (const Reduction &reduction : problem.reductions)
      schedule.releases.push_back(int64_t(reduction.producer) + 1);
    return schedule;
  }

  Schedule distance(uint32_t distance) const {
    Schedule schedule = least();
    for (size_t i = 0; i < gatherOrder.size(); ++i)
      schedule.triggers[gatherOrder[i]] = bounded(
          gatherOrder[i], problem.triggerAhead(gatherOrder, i, distance));
    for (size_t i = 0; i < reductionOrder.size(); ++i) {
      uint32_t index = reductionOrder[i];
      int64_t release =
          i + distance < reductionOrder.size()
              ? problem.reductions[reductionOrder[i + distance]].producer
              : problem.ops.size();
      int64_t soonest = int64_t(problem.reductions[index].producer) + 1;
      schedule.releases[index] =
          std::clamp(release, soonest, std::max(soonest, limits[index]));
    }
    return schedule;
  }

  Schedule automatic() {
    Schedule early = least();
    early.triggers = bounds.first;
    early.releases = limits;
    Timeline timeline = problem.simulate(early);

    Schedule best;
    bool found = false;
    auto consider = [&](Schedule candidate) {
      predict(problem, candidate);
      if (candidate.peakBytes > problem.capBytes)
        return;
      if (!found || better(candidate, best))
        best = std::move(candidate);
      found = true;
    };
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
      Schedule candidate = grant(wish(timeline, options.leadPercent));
      spendSlack(candidate, wish(timeline, options.maxLeadPercent));
      timeline = problem.simulate(candidate);
      consider(std::move(candidate));
    }
    // A fixed distance is a fair rival where memory or the link is the limit.
    for (uint32_t fixed : {1u, 2u, 3u})
      consider(distance(fixed));
    return best;
  }

  /// Gathers that are automatic where all others are forced get the trigger
  /// that they would have if none was, as far as the order of the stream
  /// allows.
  void freeAutomatic(Schedule &schedule) {
    if (std::none_of(problem.gathers.begin(), problem.gathers.end(),
                     [](const Gather &gather) { return gather.automatic; }))
      return;
    Schedule free = automatic();
    int64_t previous = -1;
    for (uint32_t index : gatherOrder) {
      int64_t &trigger = schedule.triggers[index];
      if (problem.gathers[index].automatic)
        trigger = bounded(index, free.triggers[index]);
      previous = trigger = std::max(trigger, previous);
    }
  }

private:
  int64_t bounded(uint32_t gather, int64_t trigger) const {
    return std::clamp(trigger, bounds.first[gather], bounds.last[gather]);
  }

  /// Faster, or as fast (within a thousandth) with less gathered memory.
  static bool better(const Schedule &a, const Schedule &b) {
    int64_t tolerance = std::min(a.stepNs, b.stepNs) / 1000;
    if (a.stepNs + tolerance < b.stepNs)
      return true;
    if (b.stepNs + tolerance < a.stepNs)
      return false;
    return a.gatheredPeakBytes < b.gatheredPeakBytes;
  }

  /// The byte limit of outstanding gradients: a multiple of the size that half
  /// of all gradient bytes have at least.
  int64_t windowBytes() const {
    if (options.reductionWindow <= 0)
      return INT64_MAX;
    std::vector<int64_t> sizes;
    int64_t total = 0;
    for (const Reduction &reduction : problem.reductions) {
      sizes.push_back(reduction.bytes);
      total += reduction.bytes;
    }
    std::sort(sizes.rbegin(), sizes.rend());
    int64_t seen = 0;
    for (int64_t size : sizes)
      if ((seen += size) >= total - total / 2)
        return size > INT64_MAX / options.reductionWindow
                   ? INT64_MAX
                   : size * options.reductionWindow;
    return INT64_MAX;
  }

  static int64_t percent(int64_t ns, int64_t percent) {
    return ns / 100 * percent + ns % 100 * percent / 100;
  }

  Wishes wish(const Timeline &timeline, int64_t lead) const {
    Wishes wishes{wishTriggers(timeline, lead), wishReleases(timeline, lead)};
    limitOutstanding(wishes.releases);
    return wishes;
  }

  std::vector<int64_t> wishTriggers(const Timeline &timeline,
                                    int64_t lead) const {
    // From the last gather to the first: it ends by its first use and by the
    // start of the gather behind it. `nominal` is that start at the times seen,
    // `robust` the one with lead. Where the link is the bottleneck lead would
    // add up without end and help nothing, so it is limited to that of a few
    // gathers.
    std::vector<int64_t> wishes(gatherOrder.size());
    constexpr int kNeighbours = 4;
    int64_t nominal = INT64_MAX, robust = INT64_MAX;
    int64_t neighbours[kNeighbours] = {};
    int64_t next = int64_t(problem.ops.size());
    for (size_t i = gatherOrder.size(), count = 0; i-- > 0; ++count) {
      uint32_t index = gatherOrder[i];
      const Gather &gather = problem.gathers[index];
      const Timeline::Span &span = timeline.gathers[index];
      int64_t takes = std::max(span.end - span.start, gather.cost.durationNs);
      int64_t deadline = timeline.compute[gather.firstUse].start;
      nominal = std::min(nominal, deadline) - takes;
      robust = std::min(robust, deadline) - percent(takes, lead);
      neighbours[count % kNeighbours] = percent(takes, lead) - takes;
      int64_t slack = 0;
      for (int64_t neighbour : neighbours)
        slack += neighbour;
      robust = std::max(robust, nominal - slack);
      next =
          std::min({next, lastEndedBy(timeline, robust), bounds.last[index]});
      wishes[index] = bounded(index, next);
    }
    return wishes;
  }

  std::vector<int64_t> wishReleases(const Timeline &timeline,
                                    int64_t lead) const {
    std::vector<int64_t> wishes(reductionOrder.size());
    constexpr int kNeighbours = 4;
    int64_t nominal = 0, robust = 0;
    int64_t neighbours[kNeighbours] = {};
    int64_t previous = 0;
    for (size_t i = 0; i < reductionOrder.size(); ++i) {
      uint32_t index = reductionOrder[i];
      const Reduction &reduction = problem.reductions[index];
      const Timeline::Span &span = timeline.reductions[index];
      int64_t takes =
          std::max(span.end - span.start, reduction.cost.durationNs);
      int64_t ready = timeline.compute[reduction.producer].end;
      nominal = std::max(nominal, ready) + takes;
      robust = std::max(robust, ready) + percent(takes, lead);
      neighbours[i % kNeighbours] = percent(takes, lead) - takes;
      int64_t slack = 0;
      for (int64_t neighbour : neighbours)
        slack += neighbour;
      robust = std::min(robust, nominal + slack);
      int64_t release = std::max({firstStartedAt(timeline, robust), previous,
                                  int64_t(reduction.producer) + 1});
      previous = std::min(release, limits[index]);
      wishes[index] = previous;
    }
    return wishes;
  }

  /// No producer runs with more full gradients outstanding than the window
  /// holds, its own included.
  void limitOutstanding(std::vector<int64_t> &releases) const {
    size_t oldest = 0;
    int64_t outstanding = 0;
    for (size_t i = 0; i < reductionOrder.size(); ++i) {
      int64_t producer = problem.reductions[reductionOrder[i]].producer;
      outstanding += problem.reductions[reductionOrder[i]].bytes;
      while (oldest < i) {
        uint32_t index = reductionOrder[oldest];
        // Gradients of one operation cannot wait for each other.
        bool older = int64_t(problem.reductions[index].producer) < producer;
        if (!older || (releases[index] > producer && outstanding <= window))
          break;
        releases[index] = std::min(releases[index], producer);
        outstanding -= problem.reductions[index].bytes;
        ++oldest;
      }
    }
  }

  /// The last operation that has ended by `time`, -1 if none.
  int64_t lastEndedBy(const Timeline &timeline, int64_t time) const {
    auto it = std::partition_point(
        timeline.compute.begin(), timeline.compute.end(),
        [&](const Timeline::Span &span) { return span.end <= time; });
    return it - timeline.compute.begin() - 1;
  }

  /// The first operation that starts at `time` or later; all if none.
  int64_t firstStartedAt(const Timeline &timeline, int64_t time) const {
    auto it = std::partition_point(
        timeline.compute.begin(), timeline.compute.end(),
        [&](const Timeline::Span &span) { return span.start < time; });
    return it - timeline.compute.begin();
  }

  Schedule grant(const Wishes &wishes) const {
    Schedule schedule = least();
    MemoryCurve curve(problem, schedule);
    std::vector<int64_t> total(curve.base.size());
    for (size_t i = 0; i < total.size(); ++i)
      total[i] = curve.total(i);
    auto fits = [&](size_t point, int64_t bytes) {
      return total[point] <= problem.capBytes - bytes;
    };

    size_t gathered = 0, reduced = 0;
    int64_t previousTrigger = -1;
    while (gathered < gatherOrder.size() || reduced < reductionOrder.size()) {
      bool gatherNext =
          reduced == reductionOrder.size() ||
          (gathered < gatherOrder.size() &&
           problem.gathers[gatherOrder[gathered]].firstUse <=
               problem.reductions[reductionOrder[reduced]].producer);
      if (gatherNext) {
        uint32_t index = gatherOrder[gathered++];
        int64_t bytes = problem.gathers[index].bytes;
        int64_t target = std::max(wishes.triggers[index], previousTrigger);
        int64_t &trigger = schedule.triggers[index];
        // A step earlier takes the trigger's operation and the gap before it.
        while (trigger > target && fits(2 * trigger + 1, bytes) &&
               fits(2 * trigger, bytes)) {
          total[2 * trigger + 1] += bytes;
          total[2 * trigger] += bytes;
          --trigger;
        }
        previousTrigger = trigger;
        continue;
      }
      uint32_t index = reductionOrder[reduced++];
      int64_t bytes = problem.reductions[index].bytes;
      int64_t &release = schedule.releases[index];
      while (release < wishes.releases[index] && fits(2 * release + 1, bytes) &&
             fits(2 * release + 2, bytes)) {
        total[2 * release + 1] += bytes;
        total[2 * release + 2] += bytes;
        ++release;
      }
      // Awaiting this one means having awaited those ahead of it.
      for (size_t i = reduced - 1; i-- > 0;) {
        uint32_t ahead = reductionOrder[i];
        int64_t &earlier = schedule.releases[ahead];
        if (earlier <= release)
          break;
        for (; earlier > release; --earlier) {
          total[2 * earlier] -= problem.reductions[ahead].bytes;
          total[2 * earlier - 1] -= problem.reductions[ahead].bytes;
        }
      }
    }
    return schedule;
  }

  /// Moves triggers earlier and releases later where that raises neither the
  /// peak nor the peak of its part.
  void spendSlack(Schedule &schedule, const Wishes &wishes) const {
    MemoryCurve curve(problem, schedule);
    int64_t peak = curve.total(curve.peakPoint());
    int64_t gatheredPeak =
        *std::max_element(curve.gathered.begin(), curve.gathered.end());
    int64_t gradientPeak =
        *std::max_element(curve.gradients.begin(), curve.gradients.end());
    auto fits = [&](const std::vector<int64_t> &part, int64_t partPeak,
                    size_t point, int64_t bytes) {
      return part[point] + bytes <= partPeak &&
             curve.total(point) + bytes <= peak;
    };
    int64_t previous = -1;
    for (uint32_t index : gatherOrder) {
      int64_t bytes = problem.gathers[index].bytes;
      int64_t target = std::max(wishes.triggers[index], previous);
      int64_t &trigger = schedule.triggers[index];
      while (trigger > target &&
             fits(curve.gathered, gatheredPeak, 2 * trigger + 1, bytes) &&
             fits(curve.gathered, gatheredPeak, 2 * trigger, bytes)) {
        curve.gathered[2 * trigger + 1] += bytes;
        curve.gathered[2 * trigger] += bytes;
        --trigger;
      }
      previous = trigger;
    }
    int64_t next = problem.ops.size();
    for (size_t i = reductionOrder.size(); i-- > 0;) {
      uint32_t index = reductionOrder[i];
      int64_t bytes = problem.reductions[index].bytes;
      int64_t target = std::min(wishes.releases[index], next);
      int64_t &release = schedule.releases[index];
      while (release < target &&
             fits(curve.gradients, gradientPeak, 2 * release + 1, bytes) &&
             fits(curve.gradients, gradientPeak, 2 * release + 2, bytes)) {
        curve.gradients[2 * release + 1] += bytes;
        curve.gradients[2 * release + 2] += bytes;
        ++release;
      }
      next = release;
    }
  }

  const ScheduleProblem &problem;
  const ScheduleOptions &options;
  std::vector<uint32_t> gatherOrder, reductionOrder;
  TriggerBounds bounds;
  std::vector<int64_t> limits;
  int64_t window;
};

} // namespace

/// "…, of which full gradients are the largest part".
static std::string describe(const ScheduleProblem &problem,
                            const MinimalMemory &minimal) {
  std::string where = minimal.point % 2 ? "at" : "before";
  size_t op = minimal.point / 2;
  std::string name = op < problem.ops.size() ? problem.ops[op].name : "";
  std::pair<int64_t, const char *> parts[] = {
      {minimal.baseBytes, "activations and state"},
      {minimal.gatheredBytes, "gathered weights"},
      {minimal.gradientBytes, "full gradients"}};
  auto *largest = std::max_element(
      std::begin(parts), std::end(parts),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string text = where + " operation " + std::to_string(op) +
                     (name.empty() ? "" : " (" + name + ")") + ":";
  for (size_t i = 0; i < std::size(parts); ++i)
    text += (i ? ", " : " ") + std::string(parts[i].second) + " " +
            std::to_string(parts[i].first);
  return text + "; the largest part is " + largest->second;
}

StatusOr<Schedule>
ScheduleProblem::solve(const ScheduleOptions &options) const {
  GTP_RETURN_IF_ERROR(check());
  if (options.leadPercent < 100 || options.leadPercent > 1000 ||
      options.maxLeadPercent < options.leadPercent ||
      options.maxLeadPercent > 1000)
    return Status::error(
        "lead must be from 100 to 1000 percent and at most the largest lead");
  if (options.prefetch == ScheduleOptions::Prefetch::Distance &&
      !options.distance)
    return Status::error("prefetch distance 0; 'off' issues each gather right "
                         "before its first use");
  MinimalMemory minimal = minimalMemory();
  if (minimal.bytes > capBytes)
    return Status::error("a cap of " + std::to_string(capBytes) +
                         " bytes cannot be met: any schedule needs " +
                         std::to_string(minimal.bytes) + " bytes " +
                         describe(*this, minimal));
  Solver solver(*this, options);
  Schedule schedule;
  switch (options.prefetch) {
  case ScheduleOptions::Prefetch::Auto:
    return solver.automatic();
  case ScheduleOptions::Prefetch::Off:
    schedule = solver.least();
    break;
  case ScheduleOptions::Prefetch::Distance:
    schedule = solver.distance(options.distance);
    break;
  }
  solver.freeAutomatic(schedule);
  predict(*this, schedule);
  if (schedule.peakBytes > capBytes)
    return Status::error(
        "a cap of " + std::to_string(capBytes) + " bytes is exceeded by " +
        (options.prefetch == ScheduleOptions::Prefetch::Off
             ? "automatic gathers among others"
             : "prefetch distance " + std::to_string(options.distance)) +
        ", which needs " + std::to_string(schedule.peakBytes) +
        "; with automatic prefetch " + std::to_string(minimal.bytes) +
        " can do");
  return schedule;
}

} // namespace gtp::planning
