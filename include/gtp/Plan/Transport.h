//===- Transport.h - Which transports compute what a collective means -----===//
//
// A collective's meaning is its kind, types, accumulation and order. A
// transport is eligible only where it gives the bits of that meaning: compiler,
// checker and runtime ask here.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_TRANSPORT_H
#define GTP_PLAN_TRANSPORT_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace gtp::plan {

/// What a collective computes, as far as transports care.
struct CollectiveMeaning {
  pb::Collective::Kind kind = pb::Collective::ALL_GATHER;
  pb::Collective::Reduce reduce = pb::Collective::SUM;
  pb::Collective::Order order = pb::Collective::FLAT;
  pb::DType type = pb::F32; ///< of the operands
  pb::DType wire = pb::F32;
  pb::DType accumulation = pb::F32;
  uint64_t ranks = 1; ///< of the group

  /// Of a collective with members; of type F32 where it has none.
  static CollectiveMeaning of(const pb::Collective &collective, uint64_t ranks);
};

/// "" if the transport computes the meaning; else why not: "by SYMMETRIC, which
/// sums 4 ranks in another order than FLAT". AUTO and HOST always do.
std::string whyNotBy(pb::Collective::Transport transport,
                     const CollectiveMeaning &meaning);

/// The type that contributions travel in. The narrower of type and wire: to
/// widen them first would change no bit.
pb::DType sentType(const CollectiveMeaning &meaning);

/// Bytes of scratch of one member: of `elements` of its source, and whether its
/// destination may accumulate. Everything that the transport puts somewhere
/// before results are where they belong; a multiple of 256.
uint64_t memberScratchBytes(pb::Collective::Transport transport,
                            const CollectiveMeaning &meaning, uint64_t elements,
                            bool accumulates);
/// Of all members, one behind the other.
uint64_t collectiveScratchBytes(const pb::Collective &collective,
                                uint64_t ranks);
/// "" if the collective has that many; else why it does not go by its
/// transport: "by PAIRWISE with 0 bytes of scratch, expected 768".
std::string whyNotWithScratch(const pb::Collective &collective, uint64_t ranks);

/// Whether its buffers must be in a window of the communicator.
bool needsWindow(pb::Collective::Transport transport);
/// Whether it holds multiprocessors while it waits for its peers.
constexpr bool holdsMultiprocessors(pb::Collective::Transport transport) {
  return transport == pb::Collective::SYMMETRIC ||
         transport == pb::Collective::RING_TRANSPORT ||
         transport == pb::Collective::PAIRWISE;
}

/// An all-reduce by PAIRWISE of up to this many bytes, of all ranks together,
/// goes to every rank whole.
constexpr uint64_t kSmallAllReduce = uint64_t(256) << 10;
bool goesWhole(const CollectiveMeaning &meaning, uint64_t elements);

} // namespace gtp::plan

#endif // GTP_PLAN_TRANSPORT_H
