//===- StepProfile.h - Measured times of a plan's operations --------------===//

#ifndef GTP_RT_STEPPROFILE_H
#define GTP_RT_STEPPROFILE_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/RunPlan.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gtp::rt {

/// Collects the times of operations over steps, by class and size: kernels of
/// one name and signature, collectives of one kind, transport, group size and
/// number of bytes. docs/target-profiles.md describes the file that it writes.
class StepProfile {
public:
  explicit StepProfile(const RunPlan &plan);

  /// The times of one step. Fails for an operation that the plan has not.
  Status add(Timing timing, const std::vector<OperationTime> &times);
  /// Of a step without collectives, its kernels back to back.
  Status addSustained(const std::vector<OperationTime> &times);
  /// How long a step took whose operations were not timed; 0 is not known.
  void addWhole(int64_t ns, bool withoutCollectives);

  /// What a step is made of, medians over its steps; 0 is not measured.
  struct Step {
    uint64_t steps = 0;   ///< that ran as planned
    int64_t stepNs = 0;   ///< from the first operation to the end of the last
    int64_t aloneNs = 0;  ///< operations of the compute stream, one by one
    int64_t besideNs = 0; ///< the same operations as planned
    /// Steps whose operations were not timed, as planned and without
    /// collectives.
    int64_t untimedNs = 0, withoutCollectivesNs = 0;
    /// What they lose to what runs beside them, and what the compute stream
    /// spends between them.
    int64_t contentionNs() const { return besideNs - aloneNs; }
    int64_t stallNs() const { return stepNs - besideNs; }
  };
  Step step() const;
  /// "compute 10.1 ms alone, contention 0.2 ms, stall 0.4 ms, step 10.7 ms
  /// (median of 8)".
  std::string summary() const;

  /// Writes the profile; `machine` says where it was measured, `isHost` what
  /// carried collectives whose transport the plan leaves open.
  Status write(const std::string &path, const std::string &machine,
               bool isHost) const;

private:
  /// Collectives have an empty signature.
  struct Key {
    std::string name, signature;
    uint32_t transport = 0;
    uint64_t ranks = 0, bytes = 0;

    bool operator<(const Key &other) const {
      return std::tie(name, signature, transport, ranks, bytes) <
             std::tie(other.name, other.signature, other.transport, other.ranks,
                      other.bytes);
    }
  };
  struct Samples {
    uint64_t calls = 0;
    std::vector<int64_t> alone, beside, sustained;
    /// Of kernels of the compute stream, as planned: sums of what gathers and
    /// other collectives were at work beside them.
    int64_t besideGathers = 0, besideReductions = 0;
  };
  Key keyOf(const plan::pb::Operation &operation) const;
  const plan::pb::Operation *find(const OperationTime &time) const;
  bool isCompute(const plan::pb::Operation &operation) const;
  void addOverlaps(const std::vector<OperationTime> &times);

  RunPlan plan;
  /// By region and operation; null where neither kernel nor collective.
  std::vector<std::vector<Samples *>> classes;
  std::map<Key, Samples> samples;
  /// A step each: the step, and its compute stream's operations.
  std::vector<int64_t> steps, computeAlone, computeBeside, untimed,
      withoutCollectives;
};

} // namespace gtp::rt

#endif // GTP_RT_STEPPROFILE_H
