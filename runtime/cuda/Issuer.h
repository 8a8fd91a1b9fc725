//===- Issuer.h - Puts a plan's operations on CUDA streams ----------------===//
//
// One host thread issues a rank's operations in the plan's order: waits become
// waits of streams, and a join of all streams lies between iterations and
// regions. The same calls, captured, make a CUDA graph.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_ISSUER_H
#define GTP_RUNTIME_CUDA_ISSUER_H

#include "CollectiveRunner.h"
#include "Context.h"
#include "Program.h"
#include "StandIns.h"
#include "StepTimer.h"
#include "gtp-rt/Backend.h"

#include <map>
#include <tuple>

namespace gtp::rt::cuda {

/// What becomes of the collectives of a step.
enum class Collectives {
  Run,
  Keep, ///< run, and their results go to the stand-ins too
  Omit  ///< kernels read the stand-ins
};

/// Regions [first, end) of a program.
struct Stretch {
  uint32_t program = 0, first = 0, end = 0;
  Collectives collectives = Collectives::Run;
  Timing timing = Timing::None;

  bool operator<(const Stretch &other) const {
    return std::tie(program, first, end, collectives, timing) <
           std::tie(other.program, other.first, other.end, other.collectives,
                    other.timing);
  }
};

class Issuer {
public:
  /// `collectives` is null where the plan has none.
  Issuer(const plan::pb::Plan &plan, const Code &code, Context &context,
         std::byte *arena, std::vector<uint64_t> coordinates,
         CollectiveRunner *collectives);
  ~Issuer();
  Issuer(const Issuer &) = delete;
  Issuer &operator=(const Issuer &) = delete;

  /// Makes events and progress words.
  Status create();
  /// Before a stretch that keeps or omits collectives; outlives them.
  void setStandIns(const StandIns *values) { standIns = values; }

  /// Issues the operations one by one. Fails where one cannot be issued, which
  /// it names.
  Status issue(const Stretch &stretch);
  /// Operations that a graph of the stretch would have.
  uint64_t operations(const Stretch &stretch) const;
  /// Captures the stretch; later `launch`es run it.
  StatusOr<StepReport::Graph> capture(const Stretch &stretch);
  bool isCaptured(const Stretch &stretch) const {
    return graphs.count(stretch) != 0;
  }
  Status launch(const Stretch &stretch);

  /// Recorded behind the last `issue` or `launch`.
  cudaEvent_t done() const { return doneEvent; }
  /// Of the stretch that `issue` or `launch` ran last, once it is done.
  StatusOr<std::vector<OperationTime>> times(const Stretch &stretch) const;
  /// By the device's clock, from the first operation of that to the last.
  StatusOr<double> deviceSeconds() const;
  /// What each stream has completed last, a line a stream.
  std::string describeProgress() const;

private:
  /// A place in the plan that a progress word names, as its index + 1.
  struct Mark {
    uint32_t program, region, operation;
  };

  Status makeEvent(cudaEvent_t &event, bool isTimed = false) const;
  /// All streams wait for the first, or the first for all.
  Status fork();
  Status join();
  Status issueRegion(const Stretch &stretch, uint32_t index);
  /// All regions; captured or not.
  Status issueAll(const Stretch &stretch, bool isCaptured);
  Status issueOperation(const Stretch &stretch, uint32_t region,
                        const Operation &operation, uint64_t iteration);
  Status runBody(const Stretch &stretch, const Operation &operation);
  cudaStream_t firstStream() const;

  const plan::pb::Plan &plan;
  const Code &code;
  Context &context;
  std::byte *const arena;
  const std::vector<uint64_t> coordinates;
  CollectiveRunner *const collectives;
  const StandIns *standIns = nullptr;
  std::vector<Argument> arguments;
  std::vector<cudaEvent_t> events, joinEvents; ///< all that exist
  cudaEvent_t forkEvent = nullptr, startEvent = nullptr, doneEvent = nullptr;
  std::map<Stretch, cudaGraphExec_t> graphs;
  std::map<Stretch, StepTimer> timers; ///< of those that are timed
  /// Of each stream, in memory that host and device share.
  uint32_t *progress = nullptr;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> markNumbers;
  std::vector<Mark> marks;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_ISSUER_H
