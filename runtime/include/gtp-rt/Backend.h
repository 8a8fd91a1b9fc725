//===- Backend.h - What executes a plan -----------------------------------===//
//
// A backend owns the memory and the workers of the ranks that live in this
// process (`host`: all of them, `cuda`: one) and runs the plan's regions. It
// knows nothing of data files, checkpoints or learning rates.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_BACKEND_H
#define GTP_RT_BACKEND_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gtp::rt {

class TuningCache;

struct BackendOptions {
  /// Host: random delays before operations, seeded; none without a value.
  std::optional<uint64_t> hostJitter;
  /// Longest time a step may take before the run is ended with an error that
  /// names the last completed operation of every rank.
  double stepTimeoutSeconds = 600;
  /// CUDA: issue every step's operations one by one; else steps after the
  /// second are replayed as a graph.
  bool eager = false;
  /// CUDA, to time kernels alone: training steps after that one, from 1, run
  /// without collectives, on what those of that step have written.
  std::optional<uint64_t> withoutCollectivesAfter;
  /// CUDA: what is known of products' algorithms. What rank 0's lacks, the
  /// ranks measure, and rank 0 saves. Null: the first of the library's list is
  /// taken.
  std::shared_ptr<TuningCache> tuningCache;
  /// Called with what takes a while when a backend is made. May be empty.
  std::function<void(const std::string &)> onProgress;
};

/// How the last step ran; 0 is not known.
struct StepReport {
  /// Of a graph, in the step that made it.
  struct Graph {
    uint64_t nodes = 0;
    double captureSeconds = 0;     ///< issuing the step's operations into it
    double instantiateSeconds = 0; ///< making it ready to run
  };
  double deviceSeconds = 0; ///< by the device's clock, first to last operation
  double launchSeconds = 0; ///< of the host, to put it on the device
  /// Of the device's memory in use, by this and all other processes.
  uint64_t deviceBytes = 0;
  std::optional<Graph> graph;
  /// It computed no step of training, only its kernels' times.
  bool withoutCollectives = false;
};

/// How each operation of a training step is timed.
enum class Timing {
  None,
  AsPlanned, ///< in the step as it is
  OneByOne   ///< in a step in which nothing runs beside it on its rank
};

/// When an operation ran, from the start of the step.
struct OperationTime {
  uint32_t region = 0, operation = 0; ///< in the plan's training step
  uint64_t iteration = 0;
  int64_t startNs = 0, endNs = 0;
};

class Backend {
public:
  virtual ~Backend() = default;

  /// Ranks of this process, as global rank numbers [firstRank, firstRank + n).
  virtual uint64_t firstRank() const = 0;
  virtual uint64_t localRanks() const = 0;

  /// Copies to or from bytes [offset, offset + size) of a buffer of a rank,
  /// while no step runs.
  virtual Status writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                             const void *source, uint64_t size) = 0;
  virtual Status readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                            void *destination, uint64_t size) = 0;

  /// Runs one step of `program`. `beforeUpdate`, when given, is called once,
  /// with every rank stopped, after the last BODY region and before the UPDATE
  /// region: there every reduced gradient is whole (readBuffer is allowed in
  /// it).
  virtual Status runStep(uint32_t program,
                         const std::function<Status()> &beforeUpdate) = 0;

  /// Of the training steps from the next on; neither changes results. Not
  /// together with `beforeUpdate`.
  virtual void setTiming(Timing) {}
  /// Of the last step, if it was timed, and of the first rank of this process.
  virtual StatusOr<std::vector<OperationTime>> operationTimes() const {
    return std::vector<OperationTime>();
  }

  /// Of the last `runStep`.
  virtual StepReport lastStep() const { return {}; }

  /// What has been completed last, a line a stream that begins with a newline;
  /// any thread may ask while a step runs. Empty where nobody can know.
  virtual std::string progress() const { return ""; }

  /// How attention and its gradient are computed, where there is more than one
  /// way; else empty.
  virtual std::string attention() const { return ""; }
};

/// All ranks as threads of this process (see docs/architecture.md).
/// Fails when the plan needs a type or kernel that the host does not run.
StatusOr<std::unique_ptr<Backend>>
createHostBackend(const plan::pb::Plan &plan, const BackendOptions &options);

} // namespace gtp::rt

#endif // GTP_RT_BACKEND_H
