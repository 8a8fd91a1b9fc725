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

namespace gtp::rt {

struct BackendOptions {
  /// Host: random delays before operations, seeded; none without a value.
  std::optional<uint64_t> hostJitter;
  /// Longest time a step may take before the run is ended with an error that
  /// names the last completed operation of every rank.
  double stepTimeoutSeconds = 600;
  /// CUDA: issue every step's operations one by one; else steps after the
  /// second are replayed as a graph.
  bool eager = false;
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

  /// What has been completed last, a line a stream that begins with a newline;
  /// any thread may ask while a step runs. Empty where nobody can know.
  virtual std::string progress() const { return ""; }
};

/// All ranks as threads of this process, float32 (see docs/architecture.md).
/// Fails when the plan needs a type or kernel that the host does not run.
StatusOr<std::unique_ptr<Backend>>
createHostBackend(const plan::pb::Plan &plan, const BackendOptions &options);

} // namespace gtp::rt

#endif // GTP_RT_BACKEND_H
