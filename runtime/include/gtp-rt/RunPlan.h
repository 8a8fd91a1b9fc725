//===- RunPlan.h - What a run needs to know of a plan ---------------------===//
//
// The executor runs a plan's regions; data, weights and the training loop need
// only the mesh, the model's sizes and the buffers with names. All of it is
// checked here once, against the plan alone, so that a plan that was not
// verified still cannot make a run touch what is not there.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_RUNPLAN_H
#define GTP_RT_RUNPLAN_H

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gtp::rt {

/// Views a plan, which must outlive it; copies are cheap.
class RunPlan {
public:
  static StatusOr<RunPlan> create(const plan::pb::Plan &plan);

  const plan::pb::Plan &proto() const { return *plan; }
  const plan::pb::Model &model() const { return plan->model(); }
  /// An interned string of the plan.
  const std::string &text(uint32_t index) const {
    return plan->strings(int(index));
  }

  uint64_t ranks() const { return rankCount; }
  /// Ranks that read different sequences; the others repeat them.
  uint64_t dataRanks() const { return plan::dataRankCount(plan->mesh()); }
  /// Which part of a microbatch `rank` reads.
  uint64_t dataRank(uint64_t rank) const {
    return plan::dataRankOf(plan->mesh(), rank);
  }
  /// "dp=2, gtp=4".
  std::string meshText() const;
  /// "130 all-gathers by COPY_ENGINE, 3 all-reduces by RING_TRANSPORT": the
  /// collectives of a training step; "" without any.
  std::string transportsText() const;

  /// Memory of a rank: persistent state and the step, bytes.
  uint64_t arenaBytes() const;
  /// What a rank would hold of parameters, optimizer state and gradients if it
  /// held all of them.
  uint64_t replicatedBytes() const;
  /// Bytes an element of each of a parameter's buffers.
  plan::pb::DType computeType() const { return plan->numerics().compute(); }
  plan::pb::DType masterType() const { return plan->numerics().master(); }
  plan::pb::DType gradientType() const { return plan->numerics().gradient(); }

  /// Buffers of the training step.
  uint32_t tokens = 0, labels = 0, hyper = 0;
  uint32_t loss = 0, gradNorm = 0;

  /// The program that evaluates, and its buffers.
  struct Eval {
    uint32_t program = 0;
    uint32_t tokens = 0, labels = 0;
    uint32_t loss = 0, count = 0;
  };
  std::optional<Eval> eval; ///< if the plan has one

private:
  Status findMesh();
  Status checkBatch() const;
  Status findBuffers();
  Status findEval(uint64_t idBytes);
  /// The buffer of a program's input or output `name`, of `bytes` bytes.
  Status findBuffer(uint32_t program, const char *name, bool isInput,
                    uint64_t bytes, uint32_t &buffer) const;

  const plan::pb::Plan *plan = nullptr;
  uint64_t rankCount = 1;
};

} // namespace gtp::rt

#endif // GTP_RT_RUNPLAN_H
