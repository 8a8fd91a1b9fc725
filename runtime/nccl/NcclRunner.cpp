//===- NcclRunner.cpp - Communicators of a rank, and windows of its memory ===//
//
// A communicator is made as the plan says: with how many thread blocks, and
// whether the arena is a window of it. What NCCL would do instead of what it is
// asked for is found before the first step.
//
//===----------------------------------------------------------------------===//

#include "NcclRunner.h"

#include "Check.h"
#include "Launch.h"
#include "NcclProbe.h"
#include "NcclTransfers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;
using pb::Collective;

namespace {

/// A communicator as this rank has it.
struct Communicator {
  ncclComm_t comm = nullptr; ///< null where the rank is alone
  uint32_t size = 1, me = 0;
  ncclWindow_t window = nullptr;
  /// Of collectives whose transport the plan leaves open.
  std::byte *staging = nullptr;
  uint64_t stagingBytes = 0;
  std::set<Collective::Transport> transports;
};

class NcclRunner : public CollectiveRunner {
public:
  NcclRunner(const pb::Plan &plan, const Code &code, uint64_t rank)
      : plan(plan), code(code), rank(rank) {}
  ~NcclRunner() override;
  Status create(const TextExchange &exchange);

  uint64_t stagingBytes() const override;
  void setStaging(std::byte *memory) override;
  Status setArena(std::byte *arena, uint64_t bytes) override;
  Status run(const Operation &operation, const Argument *arguments,
             cudaStream_t stream) override;
  Status health() override;

private:
  void readOperations();
  Status connect(const std::vector<std::string> &ids);
  std::string describe(size_t communicator) const;

  const pb::Plan &plan;
  const Code &code;
  const uint64_t rank;
  std::vector<Communicator> communicators;
};

} // namespace

NcclRunner::~NcclRunner() {
  for (Communicator &c : communicators) {
    if (c.window)
      ncclCommWindowDeregister(c.comm, c.window);
    if (c.comm)
      ncclCommDestroy(c.comm);
  }
}

/// Whether the plan leaves the choice to the backend, as plans priced for the
/// host do.
static bool isLeftOpen(Collective::Transport transport) {
  return transport == Collective::AUTO || transport == Collective::HOST;
}

/// The plan's, or where it leaves it open one that needs nothing and computes
/// everything.
static Collective::Transport transportOf(const CollectiveSpec &spec) {
  if (!isLeftOpen(spec.transport))
    return spec.transport;
  return spec.kind == Collective::ALL_GATHER ? Collective::RING_TRANSPORT
                                             : Collective::PAIRWISE;
}

/// What the checker counts against the plan's limit is what the plan states.
static Status checkStated(const pb::Plan &plan) {
  if (plan.claims().collective_ctas() == 0)
    return Status::ok();
  for (const pb::Program &program : plan.programs())
    for (const pb::Region &region : program.regions())
      for (const pb::Operation &operation : region.operations())
        if (auto transport = operation.collective().transport();
            operation.has_collective() && isLeftOpen(transport))
          return Status::error(
              "the plan limits the multiprocessors that collectives hold "
              "together, to " +
              std::to_string(plan.claims().collective_ctas()) +
              ", and a collective goes by " +
              Collective::Transport_Name(transport) +
              ", which leaves the transport to the backend; compile it for a "
              "GPU's --target");
  return Status::ok();
}

static bool hasScratchInPlan(const Operation &operation) {
  return operation.places.size() > 2 * operation.collective.counts.size();
}

void NcclRunner::readOperations() {
  for (const Program &program : code.programs)
    for (const Region &region : program.regions)
      for (const Operation &operation : region.operations) {
        if (!operation.isCollective())
          continue;
        Communicator &c = communicators[operation.communicator];
        Collective::Transport transport = transportOf(operation.collective);
        c.transports.insert(transport);
        if (!hasScratchInPlan(operation))
          c.stagingBytes =
              std::max(c.stagingBytes, scratchBytes(operation, transport));
      }
}

std::string NcclRunner::describe(size_t communicator) const {
  const pb::Communicator &c =
      plan.communicators(static_cast<int>(communicator));
  std::string text = "communicator " + std::to_string(communicator) + " (" +
                     pb::Communicator::Purpose_Name(c.purpose()) + " over";
  for (uint32_t axis : c.axes())
    text += " " + plan.mesh().axes(static_cast<int>(axis)).name();
  return text + ")";
}

Status cuda::checkMultiprocessors(uint64_t wanted, int there) {
  if (wanted <= static_cast<uint64_t>(there))
    return Status::ok();
  return Status::error("the plan lets collectives that run together hold " +
                       std::to_string(wanted) +
                       " multiprocessors, and the GPU has " +
                       std::to_string(there) +
                       "; compile it for a target with a lower cta_reserve");
}

Status NcclRunner::connect(const std::vector<std::string> &ids) {
  int device = 0, multiprocessors = 0;
  GTP_CUDA(cudaGetDevice(&device));
  GTP_CUDA(cudaDeviceGetAttribute(&multiprocessors,
                                  cudaDevAttrMultiProcessorCount, device));
  GTP_RETURN_IF_ERROR(
      checkMultiprocessors(plan.claims().collective_ctas(), multiprocessors));
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
    config.CTAPolicy = wanted.cta_policy() == pb::Communicator::ZERO
                           ? NCCL_CTA_POLICY_ZERO
                       : wanted.cta_policy() == pb::Communicator::EFFICIENCY
                           ? NCCL_CTA_POLICY_EFFICIENCY
                           : NCCL_CTA_POLICY_DEFAULT;
    Status made =
        check(ncclCommInitRankConfig(&c.comm, static_cast<int>(c.size), id,
                                     static_cast<int>(c.me), &config),
              nullptr, "ncclCommInitRankConfig");
    if (!made.isOk())
      return std::move(made).in(describe(i));
  }
  return Status::ok();
}

Status NcclRunner::create(const TextExchange &exchange) {
  GTP_RETURN_IF_ERROR(checkStated(plan));
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
  readOperations();
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

Status NcclRunner::setArena(std::byte *arena, uint64_t bytes) {
  for (size_t i = 0; i < communicators.size(); ++i) {
    Communicator &c = communicators[i];
    if (!c.comm || !plan.communicators(static_cast<int>(i)).needs_window())
      continue;
    Status made = check(ncclCommWindowRegister(c.comm, arena, bytes, &c.window,
                                               NCCL_WIN_COLL_SYMMETRIC),
                        c.comm, "ncclCommWindowRegister");
    for (Collective::Transport transport : c.transports)
      if (made.isOk() && plan::needsWindow(transport))
        made = probeTransport(c.comm, c.size, c.me, transport, arena, bytes);
    if (!made.isOk())
      return std::move(made).in(describe(i));
  }
  return Status::ok();
}

Status NcclRunner::run(const Operation &operation, const Argument *arguments,
                       cudaStream_t stream) {
  const Communicator &c = communicators[operation.communicator];
  const size_t members = operation.collective.counts.size();
  return runTransfer(
      {operation, transportOf(operation.collective), c.comm, c.size, c.me,
       arguments, arguments + members,
       hasScratchInPlan(operation) ? arguments[2 * members].data : c.staging,
       stream});
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
