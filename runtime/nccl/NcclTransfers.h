//===- NcclTransfers.h - A collective by each of its transports -----------===//

#ifndef GTP_RUNTIME_NCCL_NCCLTRANSFERS_H
#define GTP_RUNTIME_NCCL_NCCLTRANSFERS_H

#include "Program.h"
#include "gtp/Support/Status.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace gtp::rt::cuda {

/// "ncclAllGather failed: ...". `comm` may be null.
Status check(ncclResult_t result, ncclComm_t comm, const char *call);

/// One collective on one rank.
struct Transfer {
  const Operation &operation;
  /// That it goes by: the plan's, or where the plan leaves it open one of ours.
  plan::pb::Collective::Transport transport;
  ncclComm_t comm = nullptr; ///< null where the rank is alone
  uint32_t size = 1, me = 0;
  const Argument *sources, *destinations;
  std::byte *scratch = nullptr;
  cudaStream_t stream;

  const CollectiveSpec &spec() const { return operation.collective; }
  size_t members() const { return spec().counts.size(); }
};

/// Puts the collective on its stream; may be captured.
Status runTransfer(const Transfer &transfer);

/// Bytes of scratch of the collective by a transport.
uint64_t scratchBytes(const Operation &operation,
                      plan::pb::Collective::Transport transport);

} // namespace gtp::rt::cuda

/// Returns from the enclosing function unless the call succeeded.
#define GTP_NCCL(call)                                                         \
  GTP_RETURN_IF_ERROR(::gtp::rt::cuda::check((call), nullptr, #call))

#endif // GTP_RUNTIME_NCCL_NCCLTRANSFERS_H
