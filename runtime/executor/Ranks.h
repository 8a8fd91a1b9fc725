//===- Ranks.h - The groups that a communicator makes ---------------------===//

#ifndef GTP_RUNTIME_EXECUTOR_RANKS_H
#define GTP_RUNTIME_EXECUTOR_RANKS_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace gtp::rt {

/// How a communicator cuts the ranks into groups.
struct Groups {
  uint32_t size = 1;              ///< ranks a group
  uint32_t count = 0;             ///< groups
  std::vector<uint32_t> group;    ///< of each rank
  std::vector<uint32_t> position; ///< of each rank in its group
};

/// Of a mesh that passed `plan::verifyMesh` and axes that exist.
Groups groupsOf(const plan::pb::Mesh &mesh,
                const plan::pb::Communicator &communicator);

} // namespace gtp::rt

#endif // GTP_RUNTIME_EXECUTOR_RANKS_H
