//===- NcclProbe.h - Whether NCCL takes the path that it is asked for -----===//

#ifndef GTP_RUNTIME_NCCL_NCCLPROBE_H
#define GTP_RUNTIME_NCCL_NCCLPROBE_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace gtp::rt::cuda {

/// Fails unless this communicator's collectives on the memory go by COPY_ENGINE
/// or SYMMETRIC, which NCCL leaves for its other kernels without a word where
/// it lacks something. All ranks of it must call it; overwrites the first bytes
/// of the memory, a window of it, with those of the ranks.
Status probeTransport(ncclComm_t comm, uint32_t ranks, uint32_t me,
                      plan::pb::Collective::Transport transport,
                      std::byte *memory, uint64_t bytes);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_NCCL_NCCLPROBE_H
