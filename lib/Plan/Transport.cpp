//===- Transport.cpp - Which transports compute what a collective means ---===//
//
// FLAT adds contributions in rank order, in the accumulation type, and rounds
// once. The sum of two is the same in either order, and NCCL's kernels keep
// float32 sums of float32 and bf16 until they round: of two ranks they give
// FLAT's bits, of more they promise no order. Integers have no rounding.
//
//===----------------------------------------------------------------------===//

#include "gtp/Plan/Transport.h"

#include "gtp/Plan/Operand.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using pb::Collective;

static constexpr uint64_t kAlignment = 256;

CollectiveMeaning CollectiveMeaning::of(const Collective &collective,
                                        uint64_t ranks) {
  CollectiveMeaning meaning;
  meaning.kind = collective.kind();
  meaning.reduce = collective.reduce();
  meaning.order = collective.order();
  if (!collective.sources().empty())
    meaning.type = collective.sources(0).dtype();
  meaning.wire = collective.wire();
  meaning.accumulation = collective.accumulation();
  meaning.ranks = ranks;
  return meaning;
}

/// Why NCCL's own sum is not that of the meaning; "" if it is.
static std::string whyNotNcclSum(const CollectiveMeaning &m, bool symmetric) {
  if (m.reduce != Collective::SUM)
    return "which sums, and does no " + Collective::Reduce_Name(m.reduce);
  if (m.order != Collective::FLAT)
    return "which does not sum in order " + Collective::Order_Name(m.order);
  if (m.type != m.wire)
    return std::string("which sends ") + dtypeName(m.type) + " as it is, not " +
           dtypeName(m.wire);
  bool isFloat = m.type == pb::F32 || m.type == pb::BF16;
  if (symmetric && !isFloat)
    return std::string("which sums f32 and bf16, not ") + dtypeName(m.type);
  if (m.accumulation != (isFloat ? pb::F32 : m.type))
    return std::string("which does not sum ") + dtypeName(m.type) + " in " +
           dtypeName(m.accumulation);
  bool isFloatSum = isFloat || m.type == pb::F64;
  if (isFloatSum && m.ranks > 2)
    return "which sums " + std::to_string(m.ranks) +
           " ranks in another order than FLAT";
  return "";
}

/// Why a sum of pieces in rank order by a kernel of ours is not that of the
/// meaning; "" if it is.
static std::string whyNotOwnSum(const CollectiveMeaning &m) {
  if (m.order != Collective::FLAT)
    return "which sums in order FLAT, not " + Collective::Order_Name(m.order);
  return "";
}

std::string gtp::plan::whyNotBy(Collective::Transport transport,
                                const CollectiveMeaning &meaning) {
  const bool gathers = meaning.kind == Collective::ALL_GATHER;
  std::string why;
  switch (transport) {
  case Collective::AUTO:
  case Collective::HOST:
    return "";
  case Collective::COPY_ENGINE:
    if (meaning.kind == Collective::ALL_REDUCE)
      why = "which gathers and scatters only";
    else if (!gathers)
      why = whyNotOwnSum(meaning);
    break;
  case Collective::PAIRWISE:
    why = gathers ? "which reduces only" : whyNotOwnSum(meaning);
    break;
  case Collective::SYMMETRIC:
  case Collective::RING_TRANSPORT:
    if (!gathers)
      why = whyNotNcclSum(meaning, transport == Collective::SYMMETRIC);
    break;
  default:
    why = "which does not exist";
    break;
  }
  if (why.empty())
    return "";
  // protobuf has no name for what it does not know.
  const std::string name = Collective::Transport_IsValid(transport)
                               ? Collective::Transport_Name(transport)
                               : "transport " + std::to_string(transport);
  return "by " + name + ", " + why;
}

pb::DType gtp::plan::sentType(const CollectiveMeaning &meaning) {
  return dtypeSize(meaning.wire) < dtypeSize(meaning.type) ? meaning.wire
                                                           : meaning.type;
}

bool gtp::plan::goesWhole(const CollectiveMeaning &meaning, uint64_t elements) {
  return meaning.kind == Collective::ALL_REDUCE &&
         elements * dtypeSize(meaning.type) * meaning.ranks <= kSmallAllReduce;
}

uint64_t gtp::plan::memberScratchBytes(Collective::Transport transport,
                                       const CollectiveMeaning &meaning,
                                       uint64_t elements, bool accumulates) {
  if (meaning.kind == Collective::ALL_GATHER || meaning.ranks < 2)
    return 0;
  auto bytes = [](uint64_t count, pb::DType type) {
    return roundUp(count * dtypeSize(type), kAlignment);
  };
  const uint64_t ranks = meaning.ranks;
  const bool scatters = meaning.kind == Collective::REDUCE_SCATTER;
  const pb::DType sent = sentType(meaning);
  // Contributions as they are sent, where that is not as they are.
  const uint64_t converted = sent == meaning.type ? 0 : bytes(elements, sent);
  switch (transport) {
  case Collective::COPY_ENGINE:
    // The pieces of all ranks, without gaps.
    return bytes(elements, sent) + converted;
  case Collective::PAIRWISE: {
    uint64_t piece = goesWhole(meaning, elements)
                         ? elements
                         : (elements + ranks - 1) / ranks;
    uint64_t sums =
        !scatters && accumulates ? bytes(elements, meaning.type) : 0;
    return ranks * bytes(piece, sent) + sums + converted;
  }
  case Collective::SYMMETRIC:
  case Collective::RING_TRANSPORT:
    return accumulates
               ? bytes(scatters ? elements / ranks : elements, meaning.type)
               : 0;
  default:
    return 0;
  }
}

uint64_t gtp::plan::collectiveScratchBytes(const Collective &collective,
                                           uint64_t ranks) {
  CollectiveMeaning meaning = CollectiveMeaning::of(collective, ranks);
  uint64_t bytes = 0;
  for (int i = 0; i < collective.sources_size(); ++i)
    bytes += memberScratchBytes(collective.transport(), meaning,
                                elementCount(collective.sources(i)).value_or(0),
                                i < collective.destinations_size() &&
                                    collective.destinations(i).accumulate());
  return bytes;
}

std::string gtp::plan::whyNotWithScratch(const Collective &collective,
                                         uint64_t ranks) {
  const uint64_t needed = collectiveScratchBytes(collective, ranks);
  const uint64_t given = collective.has_scratch()
                             ? byteExtent(collective.scratch()).value_or(0)
                             : 0;
  if (given == needed)
    return "";
  return "by " + Collective::Transport_Name(collective.transport()) + " with " +
         std::to_string(given) + " bytes of scratch, expected " +
         std::to_string(needed);
}

bool gtp::plan::needsWindow(Collective::Transport transport) {
  return transport == Collective::COPY_ENGINE ||
         transport == Collective::SYMMETRIC;
}
