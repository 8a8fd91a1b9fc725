//===- Collectives.h - Collectives between threads of one process ---------===//
//
// Every rank of a group brings the addresses of its sources to the group and
// computes its own results from everybody's. What is executed is the plan's
// meaning: FLAT adds contributions in group order in the accumulation type and
// rounds once, so all ranks get the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_COLLECTIVES_H
#define GTP_RUNTIME_HOST_COLLECTIVES_H

#include "CollectiveSpec.h"
#include "Kernel.h"
#include "Wait.h"

namespace gtp::rt::host {

/// What an ALL_REDUCE needs in its group.
uint64_t scratchBytes(const CollectiveSpec &spec);

/// The ranks that meet in the collectives of one communicator.
class CollectiveGroup {
public:
  CollectiveGroup(uint32_t size, size_t mostMembers, uint64_t scratchBytes);

  /// Called by rank `me` of the group; all ranks must call it with the same
  /// spec and `identity` (which operation this is). Fails when they do not, or
  /// when the run was ended while waiting.
  Status run(const CollectiveSpec &spec, uint64_t identity, uint32_t me,
             const Argument *sources, const Argument *destinations,
             const std::atomic<bool> &ended);

private:
  struct Slot {
    std::atomic<bool> busy{false};
    uint64_t identity = 0;
    std::vector<const std::byte *> sources;
  };

  Status checkPeers(uint64_t identity, uint32_t me) const;
  void gather(const CollectiveSpec &spec, size_t member, std::byte *out) const;
  void reduce(const CollectiveSpec &spec, size_t member, uint64_t first,
              uint64_t count, std::byte *out, bool add) const;

  const uint32_t size;
  std::vector<Slot> slots;
  std::vector<std::byte> scratch;
  Barrier arrival, departure;
};

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_COLLECTIVES_H
