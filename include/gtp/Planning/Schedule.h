//===- Schedule.h - When each weight is gathered and each gradient let go -===//
//
// One region: compute operations in a given order, gathers on one stream and
// reductions on another. What is decided is *order*, never time: after which
// compute operation a gather is issued, and before which one the compute stream
// waits for a reduction, which is when the full gradient's memory comes back.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLANNING_SCHEDULE_H
#define GTP_PLANNING_SCHEDULE_H

#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gtp::planning {

/// Price of a collective.
struct TransferCost {
  int64_t durationNs = 0; ///< alone, its copy of the rank's own shard included
  /// What it adds to compute that runs beside all of it.
  int64_t contentionNs = 0;
  /// How much longer it takes beside compute, per mille of durationNs.
  int64_t slowdownPermille = 0;
  /// It runs on multiprocessors, which compute beside it lacks.
  bool holdsMultiprocessors = false;
};

struct ComputeOp {
  int64_t durationNs = 0;
  std::string name; ///< for messages; no spaces
  /// How much longer it takes, per mille, without the multiprocessors that a
  /// collective holds; where the collective's contention is more, that counts.
  int64_t crowdedPermille = 0;
};

/// A full weight for one interval of uses.
struct Gather {
  int64_t bytes = 0; ///< of the full weight's buffer
  TransferCost cost;
  uint32_t firstUse = 0; ///< compute operation
  uint32_t lastUse = 0;
  std::string name;
  /// Pinned by hand: the compute operation after which it is issued, -1 for the
  /// start of the region, or that of a pinned gather ahead of it on the stream
  /// if that is later. What is not pinned is issued in between.
  std::optional<int64_t> pinned = {};
  /// Issued when it pays, also where the options force all others.
  bool automatic = false;
};

/// A gradient that leaves through the reduce stream. `bytes` is what it holds
/// from its producer until the compute stream has waited for the reduction;
/// what the reduction writes belongs to the base profile.
struct Reduction {
  int64_t bytes = 0;
  TransferCost cost;
  uint32_t producer = 0; ///< compute operation
  /// Compute operation that reads the reduced gradient; the number of
  /// operations when only the end of the region does.
  uint32_t consumer = 0;
  std::string name;
};

/// Memory is counted at 2n+1 points of a region of n compute operations: point
/// 2i+1 is operation i at work, point 2i the gap before it, where waits happen.
class BaseProfile {
public:
  explicit BaseProfile(uint32_t numOps = 0) : points(2 * size_t(numOps) + 1) {}

  /// A buffer that compute operations first to last touch, and no other stream.
  void addCompute(uint32_t firstOp, uint32_t lastOp, int64_t bytes) {
    add(2 * size_t(firstOp) + 1, 2 * size_t(lastOp) + 1, bytes);
  }
  /// A buffer that another stream writes once compute operation `producer` is
  /// done, and compute reads until `lastOp`.
  void addFromStream(uint32_t producer, uint32_t lastOp, int64_t bytes) {
    add(2 * (size_t(producer) + 1), 2 * size_t(lastOp) + 1, bytes);
  }
  /// A buffer that compute defines and that lives to the end (from operation
  /// `firstOp`), or lives from the start to `lastOp`.
  void addUntilEnd(uint32_t firstOp, int64_t bytes) {
    add(2 * size_t(firstOp) + 1, points.size() - 1, bytes);
  }
  void addFromStart(uint32_t lastOp, int64_t bytes) {
    add(0, 2 * size_t(lastOp) + 1, bytes);
  }
  void addAlways(int64_t bytes) { add(0, points.size() - 1, bytes); }
  /// Points first to last, both included.
  void add(size_t first, size_t last, int64_t bytes) {
    for (size_t i = first; i <= last && i < points.size(); ++i)
      points[i] += bytes;
  }

  std::vector<int64_t> points;
};

struct ScheduleOptions {
  enum class Prefetch {
    Auto, ///< as late as is robustly safe
    Off,  ///< each gather right before its first use, each reduction awaited at
          ///< once
    Distance, ///< a gather is issued when the first use of the gather
              ///< `distance` before it starts
  };
  Prefetch prefetch = Prefetch::Auto;
  uint32_t distance = 1;
  /// Collectives are planned as if they took this much of their price: measured
  /// times vary.
  int64_t leadPercent = 150;
  /// Memory that costs nothing may raise the lead up to this.
  int64_t maxLeadPercent = 300;
  /// Full gradients that may be outstanding, in multiples of the size that half
  /// of all gradient bytes have at least; 0: no limit but the cap.
  int64_t reductionWindow = 3;
};

struct Schedule {
  /// For each gather the compute operation after whose completion it is issued;
  /// -1: at the start of the region. Never decreases along the gather stream.
  std::vector<int64_t> triggers;
  /// For each reduction the compute operation before which the compute stream
  /// waits for it; the number of operations: the end of the region. Never
  /// decreases along the reduce stream.
  std::vector<int64_t> releases;

  // Predictions; verify() recomputes each.
  int64_t stepNs = 0;
  int64_t computeNs = 0;    ///< sum of durations
  int64_t stallNs = 0;      ///< compute stream idle
  int64_t contentionNs = 0; ///< compute slowed down; the three sum to stepNs
  int64_t lowerBoundNs = 0; ///< no schedule is faster
  int64_t peakBytes = 0;
  int64_t gatheredPeakBytes = 0;
  int64_t gradientPeakBytes = 0; ///< outstanding full gradients
};

/// Start and end of everything, in ns from the region's start.
struct Timeline {
  struct Span {
    int64_t start = 0, end = 0;
  };
  std::vector<Span> compute, gathers, reductions; // in the problem's order
  int64_t stepNs = 0, stallNs = 0, contentionNs = 0;
};

/// Least memory that any schedule needs, where and what for.
struct MinimalMemory {
  int64_t bytes = 0;
  int64_t baseBytes = 0, gatheredBytes = 0, gradientBytes = 0;
  size_t point = 0; ///< see BaseProfile
};

struct ScheduleProblem {
  static constexpr int64_t kUnlimited = INT64_MAX;

  std::vector<ComputeOp> ops;
  /// In any order; the gather stream runs them by first use, ties by index.
  std::vector<Gather> gathers;
  /// The reduce stream runs them by producer, ties by index.
  std::vector<Reduction> reductions;
  BaseProfile base; ///< all other live bytes
  int64_t capBytes = kUnlimited;
  /// Speed of each of a gather and a reduction that run together, per mille of
  /// its speed alone: they share the link.
  int64_t sharedLinkPermille = 1000;

  Status check() const;
  /// Fails only when the cap cannot be met (or, with a forced prefetch, is
  /// not); the message says what is least and which part of it is largest.
  StatusOr<Schedule> solve(const ScheduleOptions &options = {}) const;
  /// From first principles: triggers come before uses, streams' orders and pins
  /// hold, the cap is respected, the predictions are true.
  Status verify(const Schedule &schedule) const;

  /// Index permutations: the streams' issue order.
  std::vector<uint32_t> gatherOrder() const;
  std::vector<uint32_t> reductionOrder() const;
  /// The operation after which the gather at a position of that order is issued
  /// when it is `distance` gathers ahead: when the first use of the one so many
  /// before it starts, its own first use for 0.
  int64_t triggerAhead(const std::vector<uint32_t> &order, size_t position,
                       uint32_t distance) const;
  /// Plays the schedule; only triggers and releases are read.
  Timeline simulate(const Schedule &schedule) const;
  int64_t lowerBoundNs() const;
  MinimalMemory minimalMemory() const;

  std::string print(const Schedule *schedule = nullptr) const;
};

struct ParsedScheduleProblem {
  ScheduleProblem problem;
  bool solved = false;
  Schedule schedule;
};
StatusOr<ParsedScheduleProblem> parseScheduleProblem(const std::string &text);

} // namespace gtp::planning

#endif // GTP_PLANNING_SCHEDULE_H
