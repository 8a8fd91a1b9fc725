//===- CollectiveSpec.h - A collective of a plan, checked -----------------===//

#ifndef GTP_RUNTIME_EXECUTOR_COLLECTIVESPEC_H
#define GTP_RUNTIME_EXECUTOR_COLLECTIVESPEC_H

#include "gtp/Plan/Transport.h"
#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <vector>

namespace gtp::rt {

/// A collective of a plan, checked and reduced to what running it needs.
struct CollectiveSpec {
  plan::pb::Collective::Kind kind;
  plan::pb::Collective::Reduce reduce;
  plan::pb::DType type;
  plan::pb::DType wire;
  plan::pb::DType accumulation;
  /// Elements of the source of each coalesced member.
  std::vector<uint64_t> counts;
  plan::pb::Collective::Transport transport = plan::pb::Collective::AUTO;
  uint32_t ranks = 1;

  plan::CollectiveMeaning meaning() const {
    return {kind,         reduce, plan::pb::Collective::FLAT, type, wire,
            accumulation, ranks};
  }
};

/// Fails when no backend implements what the collective means, or when counts
/// do not fit a group of `groupSize` ranks.
StatusOr<CollectiveSpec> readCollective(const plan::pb::Collective &collective,
                                        uint32_t groupSize);

} // namespace gtp::rt

#endif // GTP_RUNTIME_EXECUTOR_COLLECTIVESPEC_H
