//===- NcclRunner.cpp - Collectives through NCCL --------------------------===//
//
// NCCL moves bytes; sums are ours. FLAT adds contributions in rank order and
// rounds once, which no ring or tree does for more than two ranks, so a
// reduction sends each rank the pieces it owns and adds them there, in order:
// the same bits as the host backend, on any number of ranks.
//
//===----------------------------------------------------------------------===//

#include "NcclRunner.h"

#include "Check.h"
#include "Launch.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nccl.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;
using pb::Collective;

static Status check(ncclResult_t result, ncclComm_t comm, const char *call) {
  if (result == ncclSuccess || result == ncclInProgress)
    return Status::ok();
  std::string name(call);
  const char *last = ncclGetLastError(comm);
  return Status::error(name.substr(0, name.find('(')) +
                       " failed: " + ncclGetErrorString(result) +
                       (last && *last ? std::string(": ") + last : ""));
}

#define GTP_NCCL(call) GTP_RETURN_IF_ERROR(check((call), nullptr, #call))

/// An all-reduce up to this many bytes goes to every rank whole.
static constexpr uint64_t kSmall = uint64_t(256) << 10;

namespace {

/// A communicator as this rank has it.
struct Communicator {
  ncclComm_t comm = nullptr; ///< null where the rank is alone
  uint32_t size = 1, me = 0;
  std::byte *staging = nullptr;
  uint64_t stagingBytes = 0;
};

/// A member of a reduction: which elements each rank owns, and where what the
/// others send is put.
struct Reduction {
  const CollectiveSpec &spec;
  uint64_t count, elementBytes;
  uint32_t size;
  bool scatters;

  Reduction(const CollectiveSpec &spec, size_t member, uint32_t size)
      : spec(spec), count(spec.counts[member]),
        elementBytes(plan::dtypeSize(spec.type)), size(size),
        scatters(spec.kind == Collective::REDUCE_SCATTER) {}

  bool goesWhole() const {
    return !scatters && count * elementBytes * size <= kSmall;
  }
  uint64_t begin(uint32_t rank) const { return count * rank / size; }
  uint64_t length(uint32_t rank) const { return begin(rank + 1) - begin(rank); }
  /// Bytes between what two ranks send.
  uint64_t slotBytes() const {
    return roundUp(
        (goesWhole() ? count : (count + size - 1) / size) * elementBytes, 256);
  }
  /// Slots of all ranks, then the sum of an all-reduce that adds.
  uint64_t stagingBytes() const {
    return size * slotBytes() +
           (scatters ? 0 : roundUp(count * elementBytes, 256));
  }
};

class NcclRunner : public CollectiveRunner {
public:
  NcclRunner(const pb::Plan &plan, const Code &code, uint64_t rank)
      : plan(plan), code(code), rank(rank) {}
  ~NcclRunner() override;
  Status create(const TextExchange &exchange);

  uint64_t stagingBytes() const override;
  void setStaging(std::byte *memory) override;
  Status run(const Operation &operation, const Argument *arguments,
             cudaStream_t stream) override;
  Status health() override;

private:
  Status checkOperations();
  Status connect(const std::vector<std::string> &ids);
  Status gather(const Communicator &c, const Operation &operation,
                const Argument *arguments, cudaStream_t stream) const;
  Status reduce(const Communicator &c, const Operation &operation,
                const Argument *arguments, cudaStream_t stream) const;
  Status swapPieces(const Communicator &c, const Operation &operation,
                    const Argument *sources, cudaStream_t stream) const;
  Status sumPieces(const Communicator &c, const Operation &operation,
                   const Argument *arguments, cudaStream_t stream) const;
  Status shareSums(const Communicator &c, const Operation &operation,
                   const Argument *destinations, cudaStream_t stream) const;
  Status deliver(const Communicator &c, const Operation &operation,
                 const Argument *destinations, cudaStream_t stream) const;

  const pb::Plan &plan;
  const Code &code;
  const uint64_t rank;
  std::vector<Communicator> communicators;
};

} // namespace

NcclRunner::~NcclRunner() {
  for (Communicator &c : communicators)
    if (c.comm)
      ncclCommDestroy(c.comm);
}

/// What cannot be had is an error, whatever would do instead.
static Status checkTransport(const Collective &collective) {
  switch (collective.transport()) {
  // A plan priced for the host says HOST: any way will do.
  case Collective::AUTO:
  case Collective::HOST:
    return Status::ok();
  default:
    return Status::error("its transport is " +
                         Collective::Transport_Name(collective.transport()) +
                         ", and the cuda backend has AUTO only");
  }
}

Status NcclRunner::checkOperations() {
  for (size_t p = 0; p < code.programs.size(); ++p)
    for (size_t r = 0; r < code.programs[p].regions.size(); ++r)
      for (const Operation &operation :
           code.programs[p].regions[r].operations) {
        if (!operation.isCollective())
          continue;
        Status status =
            checkTransport(plan.programs(static_cast<int>(p))
                               .regions(static_cast<int>(r))
                               .operations(static_cast<int>(operation.index))
                               .collective());
        if (!status.isOk())
          return std::move(status).in(
              describePlace(plan, p, r, operation.index));
        Communicator &c = communicators[operation.communicator];
        uint64_t bytes = 0;
        const CollectiveSpec &spec = operation.collective;
        for (size_t i = 0; i < spec.counts.size(); ++i)
          if (spec.kind != Collective::ALL_GATHER)
            bytes += Reduction(spec, i, c.size).stagingBytes();
        c.stagingBytes = std::max(c.stagingBytes, bytes);
      }
  return Status::ok();
}

Status NcclRunner::connect(const std::vector<std::string> &ids) {
  for (size_t i = 0; i < communicators.size(); ++i) {
    Communicator &c = communicators[i];
    if (c.size == 1)
      continue;
    const Groups &groups = code.communicators[i];
    size_t first = 0;
    while (groups.group[first] != groups.group[rank])
      ++first;
    ncclUniqueId id;
    if (ids[first].size() != communicators.size() * sizeof id)
      return Status::error("rank " + std::to_string(first) +
                           " sent no identifiers of communicators");
    std::memcpy(&id, ids[first].data() + i * sizeof id, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const pb::Communicator &wanted = plan.communicators(static_cast<int>(i));
    if (wanted.min_ctas())
      config.minCTAs = static_cast<int>(wanted.min_ctas());
    if (wanted.max_ctas())
      config.maxCTAs = static_cast<int>(wanted.max_ctas());
    GTP_NCCL(ncclCommInitRankConfig(&c.comm, static_cast<int>(c.size), id,
                                    static_cast<int>(c.me), &config));
  }
  return Status::ok();
}

Status NcclRunner::create(const TextExchange &exchange) {
  // One graph a step on one thread needs none of what these are for, and a
  // multicast object can outlive a process that crashes.
  for (const char *variable :
       {"NCCL_NVLS_ENABLE", "NCCL_GRAPH_REGISTER", "NCCL_GRAPH_MIXING_SUPPORT"})
    setenv(variable, "0", 0);
  std::string mine;
  for (const Groups &groups : code.communicators) {
    Communicator c;
    c.size = groups.size;
    c.me = groups.position[rank];
    communicators.push_back(c);
    if (c.size > kMostRanksOfAGroup)
      return Status::error("a communicator has " + std::to_string(c.size) +
                           " ranks; the cuda backend takes " +
                           std::to_string(kMostRanksOfAGroup));
    ncclUniqueId id = {};
    if (c.size > 1 && c.me == 0)
      GTP_NCCL(ncclGetUniqueId(&id));
    mine.append(reinterpret_cast<const char *>(&id), sizeof id);
  }
  GTP_RETURN_IF_ERROR(checkOperations());
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> ids, exchange(mine));
  return connect(ids);
}

uint64_t NcclRunner::stagingBytes() const {
  uint64_t bytes = 0;
  for (const Communicator &c : communicators)
    bytes += c.stagingBytes;
  return bytes;
}

void NcclRunner::setStaging(std::byte *memory) {
  for (Communicator &c : communicators) {
    c.staging = memory;
    memory += c.stagingBytes;
  }
}

Status NcclRunner::gather(const Communicator &c, const Operation &operation,
                          const Argument *arguments,
                          cudaStream_t stream) const {
  const CollectiveSpec &spec = operation.collective;
  const size_t members = spec.counts.size();
  GTP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < members; ++i)
    GTP_NCCL(ncclAllGather(arguments[i].data, arguments[members + i].data,
                           spec.counts[i] * plan::dtypeSize(spec.type),
                           ncclUint8, c.comm, stream));
  GTP_NCCL(ncclGroupEnd());
  return Status::ok();
}

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
Status NcclRunner::swapPieces(const Communicator &c, const Operation &operation,
                              const Argument *sources,
                              cudaStream_t stream) const {
  const CollectiveSpec &spec = operation.collective;
  std::byte *staging = c.staging;
  GTP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < spec.counts.size(); ++i) {
    Reduction r(spec, i, c.size);
    for (uint32_t peer = 0; peer < c.size; ++peer) {
      if (peer == c.me)
        continue;
      bool whole = r.goesWhole();
      uint64_t out = (whole ? r.count : r.length(peer)) * r.elementBytes;
      uint64_t in = (whole ? r.count : r.length(c.me)) * r.elementBytes;
      uint64_t from = whole ? 0 : r.begin(peer) * r.elementBytes;
      GTP_RETURN_IF_ERROR(exchange(c.comm, peer, sources[i].data + from, out,
                                   staging + peer * r.slotBytes(), in, stream));
    }
    staging += r.stagingBytes();
  }
  GTP_NCCL(ncclGroupEnd());
  return Status::ok();
}

static Scalar scalarOf(pb::DType type) {
  return type == pb::F64    ? Scalar::F64
         : type == pb::I64  ? Scalar::I64
         : type == pb::BF16 ? Scalar::BF16
                            : Scalar::F32;
}

Status NcclRunner::sumPieces(const Communicator &c, const Operation &operation,
                             const Argument *arguments,
                             cudaStream_t stream) const {
  const CollectiveSpec &spec = operation.collective;
  const size_t members = spec.counts.size();
  std::byte *staging = c.staging;
  for (size_t i = 0; i < members; ++i) {
    Reduction r(spec, i, c.size);
    const Argument &to = arguments[members + i];
    const bool whole = r.goesWhole();
    const uint64_t begin = whole ? 0 : r.begin(c.me) * r.elementBytes;
    const void *pieces[kMostRanksOfAGroup];
    for (uint32_t peer = 0; peer < c.size; ++peer)
      pieces[peer] = peer == c.me ? arguments[i].data + begin
                                  : staging + peer * r.slotBytes();
    std::byte *out = to.data;
    if (!r.scatters && !whole)
      // Of an all-reduce that adds, the sums of all come together first.
      out = (to.add ? staging + c.size * r.slotBytes() : to.data) + begin;
    GTP_CUDA(reduceInOrder({scalarOf(spec.type), scalarOf(spec.wire),
                            spec.accumulation == pb::F64,
                            spec.reduce == Collective::MAX},
                           pieces, c.size, whole ? r.count : r.length(c.me),
                           out, to.add && (r.scatters || whole), stream));
    staging += r.stagingBytes();
  }
  return Status::ok();
}

/// Of all-reduces whose ranks sum a piece each: everybody gets all pieces.
Status NcclRunner::shareSums(const Communicator &c, const Operation &operation,
                             const Argument *destinations,
                             cudaStream_t stream) const {
  const CollectiveSpec &spec = operation.collective;
  std::byte *staging = c.staging;
  GTP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < spec.counts.size(); ++i) {
    Reduction r(spec, i, c.size);
    std::byte *sums = destinations[i].add ? staging + c.size * r.slotBytes()
                                          : destinations[i].data;
    for (uint32_t peer = 0; peer < c.size && !r.goesWhole(); ++peer) {
      if (peer == c.me)
        continue;
      GTP_RETURN_IF_ERROR(exchange(c.comm, peer,
                                   sums + r.begin(c.me) * r.elementBytes,
                                   r.length(c.me) * r.elementBytes,
                                   sums + r.begin(peer) * r.elementBytes,
                                   r.length(peer) * r.elementBytes, stream));
    }
    staging += r.stagingBytes();
  }
  GTP_NCCL(ncclGroupEnd());
  return Status::ok();
}

/// Adds what came together to destinations that add.
Status NcclRunner::deliver(const Communicator &c, const Operation &operation,
                           const Argument *destinations,
                           cudaStream_t stream) const {
  const CollectiveSpec &spec = operation.collective;
  std::byte *staging = c.staging;
  for (size_t i = 0; i < spec.counts.size(); ++i) {
    Reduction r(spec, i, c.size);
    const void *sum = staging + c.size * r.slotBytes();
    if (destinations[i].add && !r.goesWhole())
      GTP_CUDA(reduceInOrder({scalarOf(spec.type), scalarOf(spec.type)}, &sum,
                             1, r.count, destinations[i].data, true, stream));
    staging += r.stagingBytes();
  }
  return Status::ok();
}

Status NcclRunner::reduce(const Communicator &c, const Operation &operation,
                          const Argument *arguments,
                          cudaStream_t stream) const {
  const Argument *destinations = arguments + operation.collective.counts.size();
  GTP_RETURN_IF_ERROR(swapPieces(c, operation, arguments, stream));
  GTP_RETURN_IF_ERROR(sumPieces(c, operation, arguments, stream));
  if (operation.collective.kind == Collective::REDUCE_SCATTER)
    return Status::ok();
  GTP_RETURN_IF_ERROR(shareSums(c, operation, destinations, stream));
  return deliver(c, operation, destinations, stream);
}

Status NcclRunner::run(const Operation &operation, const Argument *arguments,
                       cudaStream_t stream) {
  const Communicator &c = communicators[operation.communicator];
  const CollectiveSpec &spec = operation.collective;
  if (spec.kind != Collective::ALL_GATHER)
    return c.size == 1 ? sumPieces(c, operation, arguments, stream)
                       : reduce(c, operation, arguments, stream);
  if (c.size > 1)
    return gather(c, operation, arguments, stream);
  const size_t members = spec.counts.size();
  for (size_t i = 0; i < members; ++i)
    if (arguments[i].data != arguments[members + i].data)
      GTP_CUDA(cudaMemcpyAsync(arguments[members + i].data, arguments[i].data,
                               spec.counts[i] * plan::dtypeSize(spec.type),
                               cudaMemcpyDeviceToDevice, stream));
  return Status::ok();
}

Status NcclRunner::health() {
  for (const Communicator &c : communicators) {
    ncclResult_t state = ncclSuccess;
    if (c.comm)
      GTP_NCCL(ncclCommGetAsyncError(c.comm, &state));
    GTP_RETURN_IF_ERROR(check(state, c.comm, "a collective of NCCL"));
  }
  return Status::ok();
}

StatusOr<std::unique_ptr<CollectiveRunner>>
gtp::rt::cuda::createNcclRunner(const pb::Plan &plan, const Code &code,
                                uint64_t rank, const TextExchange &exchange) {
  auto runner = std::make_unique<NcclRunner>(plan, code, rank);
  GTP_RETURN_IF_ERROR(runner->create(exchange));
  return std::unique_ptr<CollectiveRunner>(std::move(runner));
}

std::string gtp::rt::cuda::ncclVersion() {
  int version = 0;
  ncclGetVersion(&version);
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}
