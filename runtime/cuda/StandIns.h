//===- StandIns.h - Results of collectives, for steps without them --------===//

#ifndef GTP_RUNTIME_CUDA_STANDINS_H
#define GTP_RUNTIME_CUDA_STANDINS_H

#include "DeviceMemory.h"
#include "Program.h"

#include <cuda_runtime_api.h>
#include <map>

namespace gtp::rt::cuda {

/// Copies of what collectives have written, outside the arena, where later
/// operations of the step would overwrite it. Kernels of a step without
/// collectives read them: numbers of another layer, but true weights and
/// gradients, on which they take as long as in training.
class StandIns {
public:
  /// Of every transient buffer that a collective of program 0 writes; large
  /// ones of one size, from collectives of one kind, share theirs.
  static StatusOr<std::unique_ptr<StandIns>>
  create(const plan::pb::Plan &plan, const Code &code, int device);

  /// Puts copies of what `operation`, a collective, has written on the stream.
  Status keep(const Operation &operation, const Code &code,
              const std::byte *arena, cudaStream_t stream) const;
  /// Where `place` is then; null for a buffer without a stand-in.
  std::byte *find(const Place &place, const Code &code) const;

private:
  std::map<uint32_t, uint64_t> offsets; ///< of a buffer in `memory`
  std::unique_ptr<DeviceMemory> memory;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_STANDINS_H
