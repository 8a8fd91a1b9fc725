//===- NcclTransfers.cpp - A collective by each of its transports ---------===//
//
// Where NCCL's own sum is the collective's meaning, NCCL sums. Else NCCL moves
// bytes, by copy engines or by sends and receives, and the sum is ours: in rank
// order, rounded once, the same bits as the host backend on any number of
// ranks.
//
//===----------------------------------------------------------------------===//

#include "NcclTransfers.h"

#include "Check.h"
#include "Launch.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/RoundUp.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;
using pb::Collective;

Status gtp::rt::cuda::check(ncclResult_t result, ncclComm_t comm,
                            const char *call) {
  if (result == ncclSuccess || result == ncclInProgress)
    return Status::ok();
  std::string name(call);
  const char *last = ncclGetLastError(comm);
  return Status::error(name.substr(0, name.find('(')) +
                       " failed: " + ncclGetErrorString(result) +
                       (last && *last ? std::string(": ") + last : ""));
}

static Scalar scalarOf(pb::DType type) {
  return type == pb::F64    ? Scalar::F64
         : type == pb::I64  ? Scalar::I64
         : type == pb::BF16 ? Scalar::BF16
                            : Scalar::F32;
}

static ncclDataType_t ncclTypeOf(pb::DType type) {
  return type == pb::F64    ? ncclFloat64
         : type == pb::I64  ? ncclInt64
         : type == pb::BF16 ? ncclBfloat16
                            : ncclFloat32;
}

namespace {

/// A member of a reduction whose sum is ours: which elements each rank owns,
/// and where in the scratch what is.
struct MemberSum {
  const Transfer &transfer;
  const plan::CollectiveMeaning meaning;
  const pb::DType sent;
  const size_t member;
  const uint64_t count, elementBytes, sentBytes;
  std::byte *const scratch;

  MemberSum(const Transfer &t, size_t member, std::byte *scratch)
      : transfer(t), meaning(t.spec().meaning()), sent(plan::sentType(meaning)),
        member(member), count(t.spec().counts[member]),
        elementBytes(plan::dtypeSize(meaning.type)),
        sentBytes(plan::dtypeSize(sent)), scratch(scratch) {}

  bool scatters() const { return meaning.kind == Collective::REDUCE_SCATTER; }
  bool goesWhole() const { return plan::goesWhole(meaning, count); }
  uint64_t begin(uint32_t rank) const { return count * rank / meaning.ranks; }
  uint64_t length(uint32_t rank) const { return begin(rank + 1) - begin(rank); }
  const Argument &destination() const { return transfer.destinations[member]; }

  /// Bytes between what two ranks send.
  uint64_t slotBytes() const {
    if (transfer.transport == Collective::COPY_ENGINE)
      return count / meaning.ranks * sentBytes;
    uint64_t most = (count + meaning.ranks - 1) / meaning.ranks;
    return roundUp((goesWhole() ? count : most) * sentBytes, 256);
  }
  std::byte *slot(uint32_t rank) const { return scratch + rank * slotBytes(); }
  /// Behind the slots, of an all-reduce that accumulates.
  std::byte *sums() const { return slot(transfer.size); }
  /// Contributions as they are sent.
  const std::byte *contributions() const {
    return sent == meaning.type ? transfer.sources[member].data : converted();
  }
  std::byte *converted() const {
    return scratch + scratchBytes() - roundUp(count * sentBytes, 256);
  }
  uint64_t scratchBytes() const {
    return plan::memberScratchBytes(transfer.transport, meaning, count,
                                    accumulates());
  }
  /// Whether the plan's destination accumulates, in whichever iterations.
  bool accumulates() const {
    return transfer.operation.places[transfer.members() + member].accumulate;
  }

  Status convert() const;
  Status sum() const;
  Status deliver() const;
};

} // namespace

Status MemberSum::convert() const {
  if (sent != meaning.type)
    GTP_CUDA(roundToBf16(transfer.sources[member].data, count, converted(),
                         transfer.stream));
  return Status::ok();
}

/// Adds what came to this rank.
Status MemberSum::sum() const {
  const bool whole = goesWhole();
  const bool byCopies = transfer.transport == Collective::COPY_ENGINE;
  const uint64_t first = whole ? 0 : begin(transfer.me);
  const void *pieces[kMostRanksOfAGroup];
  for (uint32_t peer = 0; peer < transfer.size; ++peer)
    pieces[peer] = peer == transfer.me && !byCopies
                       ? contributions() + first * sentBytes
                       : slot(peer);
  const Argument &to = destination();
  std::byte *out = to.data;
  if (!scatters() && !whole)
    // Of an all-reduce that adds, the sums of all come together first.
    out = (to.add ? sums() : to.data) + first * elementBytes;
  const Reduction reduction{scalarOf(meaning.type), scalarOf(meaning.wire),
                            meaning.accumulation == pb::F64,
                            meaning.reduce == Collective::MAX,
                            sent != meaning.type};
  GTP_CUDA(reduceInOrder(reduction, pieces, transfer.size,
                         whole ? count : length(transfer.me), out,
                         to.add && (scatters() || whole), transfer.stream));
  return Status::ok();
}

static Status addTo(const Argument &to, const void *sum, pb::DType type,
                    uint64_t count, cudaStream_t stream) {
  Scalar scalar = scalarOf(type);
  GTP_CUDA(
      reduceInOrder({scalar, scalar}, &sum, 1, count, to.data, true, stream));
  return Status::ok();
}

/// Adds what came together to a destination that adds.
Status MemberSum::deliver() const {
  if (!destination().add || goesWhole())
    return Status::ok();
  return addTo(destination(), sums(), meaning.type, count, transfer.stream);
}

static std::vector<MemberSum> reductionsOf(const Transfer &t) {
  std::vector<MemberSum> all;
  std::byte *scratch = t.scratch;
  for (size_t i = 0; i < t.members(); ++i) {
    all.emplace_back(t, i, scratch);
    scratch += all.back().scratchBytes();
  }
  return all;
}

uint64_t gtp::rt::cuda::scratchBytes(const Operation &operation,
                                     Collective::Transport transport) {
  const CollectiveSpec &spec = operation.collective;
  uint64_t bytes = 0;
  for (size_t i = 0; i < spec.counts.size(); ++i)
    bytes += plan::memberScratchBytes(
        transport, spec.meaning(), spec.counts[i],
        operation.places[spec.counts.size() + i].accumulate);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Pieces by sends and receives, or by copy engines
//===----------------------------------------------------------------------===//

/// Sends bytes to a peer and receives others, of either as many as there are.
static Status exchange(ncclComm_t comm, uint32_t peer, const std::byte *from,
                       uint64_t sent, std::byte *to, uint64_t received,
                       cudaStream_t stream) {
  const int rank = static_cast<int>(peer);
  if (sent)
    GTP_NCCL(ncclSend(from, sent, ncclUint8, rank, comm, stream));
  if (received)
    GTP_NCCL(ncclRecv(to, received, ncclUint8, rank, comm, stream));
  return Status::ok();
}

/// Sends every rank what it sums, and receives what this one does.
static Status swapPieces(const Transfer &t, const MemberSum &r) {
  if (t.transport == Collective::COPY_ENGINE) {
    GTP_NCCL(ncclAlltoAll(r.contributions(), r.slot(0), r.slotBytes(),
                          ncclUint8, t.comm, t.stream));
    return Status::ok();
  }
  const bool whole = r.goesWhole();
  for (uint32_t peer = 0; peer < t.size; ++peer) {
    if (peer == t.me)
      continue;
    uint64_t out = (whole ? r.count : r.length(peer)) * r.sentBytes;
    uint64_t in = (whole ? r.count : r.length(t.me)) * r.sentBytes;
    uint64_t from = whole ? 0 : r.begin(peer) * r.sentBytes;
    GTP_RETURN_IF_ERROR(exchange(t.comm, peer, r.contributions() + from, out,
                                 r.slot(peer), in, t.stream));
  }
  return Status::ok();
}

/// Of all-reduces whose ranks sum a piece each: everybody gets all pieces.
static Status shareSums(const Transfer &t, const MemberSum &r) {
  std::byte *sums = r.destination().add ? r.sums() : r.destination().data;
  for (uint32_t peer = 0; peer < t.size && !r.goesWhole(); ++peer) {
    if (peer == t.me)
      continue;
    GTP_RETURN_IF_ERROR(exchange(
        t.comm, peer, sums + r.begin(t.me) * r.elementBytes,
        r.length(t.me) * r.elementBytes, sums + r.begin(peer) * r.elementBytes,
        r.length(peer) * r.elementBytes, t.stream));
  }
  return Status::ok();
}

static Status sumPieces(const Transfer &t) {
  std::vector<MemberSum> all = reductionsOf(t);
  for (const MemberSum &r : all)
    GTP_RETURN_IF_ERROR(r.convert());
  GTP_NCCL(ncclGroupStart());
  for (const MemberSum &r : all)
    GTP_RETURN_IF_ERROR(swapPieces(t, r));
  GTP_NCCL(ncclGroupEnd());
  for (const MemberSum &r : all)
    GTP_RETURN_IF_ERROR(r.sum());
  if (t.spec().kind == Collective::REDUCE_SCATTER)
    return Status::ok();
  GTP_NCCL(ncclGroupStart());
  for (const MemberSum &r : all)
    GTP_RETURN_IF_ERROR(shareSums(t, r));
  GTP_NCCL(ncclGroupEnd());
  for (const MemberSum &r : all)
    GTP_RETURN_IF_ERROR(r.deliver());
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// NCCL's sums, and gathers
//===----------------------------------------------------------------------===//

static Status sumByNccl(const Transfer &t) {
  const CollectiveSpec &spec = t.spec();
  const ncclDataType_t type = ncclTypeOf(spec.type);
  std::vector<MemberSum> all = reductionsOf(t);
  auto target = [](const MemberSum &r) {
    return r.destination().add ? r.scratch : r.destination().data;
  };
  const bool scatters = spec.kind == Collective::REDUCE_SCATTER;
  GTP_NCCL(ncclGroupStart());
  for (const MemberSum &r : all)
    if (scatters)
      GTP_NCCL(ncclReduceScatter(t.sources[r.member].data, target(r),
                                 r.count / t.size, type, ncclSum, t.comm,
                                 t.stream));
    else
      GTP_NCCL(ncclAllReduce(t.sources[r.member].data, target(r), r.count, type,
                             ncclSum, t.comm, t.stream));
  GTP_NCCL(ncclGroupEnd());
  for (const MemberSum &r : all)
    if (r.destination().add)
      GTP_RETURN_IF_ERROR(addTo(r.destination(), r.scratch, spec.type,
                                scatters ? r.count / t.size : r.count,
                                t.stream));
  return Status::ok();
}

static Status gather(const Transfer &t) {
  const CollectiveSpec &spec = t.spec();
  GTP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < t.members(); ++i)
    GTP_NCCL(ncclAllGather(t.sources[i].data, t.destinations[i].data,
                           spec.counts[i] * plan::dtypeSize(spec.type),
                           ncclUint8, t.comm, t.stream));
  GTP_NCCL(ncclGroupEnd());
  return Status::ok();
}

/// Of a group of one: what each contributes is rounded to what is sent all the
/// same.
static Status runAlone(const Transfer &t) {
  const CollectiveSpec &spec = t.spec();
  for (size_t i = 0; i < t.members(); ++i) {
    const void *source = t.sources[i].data;
    const Argument &to = t.destinations[i];
    if (spec.kind == Collective::ALL_GATHER && source != to.data)
      GTP_CUDA(cudaMemcpyAsync(to.data, source,
                               spec.counts[i] * plan::dtypeSize(spec.type),
                               cudaMemcpyDeviceToDevice, t.stream));
    if (spec.kind != Collective::ALL_GATHER)
      GTP_CUDA(reduceInOrder({scalarOf(spec.type), scalarOf(spec.wire)},
                             &source, 1, spec.counts[i], to.data, to.add,
                             t.stream));
  }
  return Status::ok();
}

Status gtp::rt::cuda::runTransfer(const Transfer &t) {
  if (t.size == 1)
    return runAlone(t);
  if (t.spec().kind == Collective::ALL_GATHER)
    return gather(t);
  switch (t.transport) {
  case Collective::SYMMETRIC:
  case Collective::RING_TRANSPORT:
    return sumByNccl(t);
  default:
    return sumPieces(t);
  }
}
