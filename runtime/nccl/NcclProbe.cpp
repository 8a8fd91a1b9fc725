//===- NcclProbe.cpp - Whether NCCL takes the path that it is asked for ---===//
//
// NCCL picks the path of each call by itself and reports none. But a captured
// call shows what it launches: copy engines no kernel, kernels on windows one
// of that name.
//
//===----------------------------------------------------------------------===//

#include "NcclProbe.h"

#include "Driver.h"
#include "NcclTransfers.h"

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;
using pb::Collective;

namespace {

struct GraphReader {
  decltype(&cuGraphNodeGetType) nodeType = nullptr;
  decltype(&cuGraphKernelNodeGetParams) kernelParams = nullptr;
  decltype(&cuFuncGetName) functionName = nullptr;
  decltype(&cuKernelGetName) kernelName = nullptr;

  Status load();
  /// Names of the kernels of a graph.
  StatusOr<std::vector<std::string>> kernels(cudaGraph_t graph) const;
};

/// A stream and what is captured on it, given back however a probe ends.
struct Captured {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;

  Captured() = default;
  Captured(const Captured &) = delete;
  Captured &operator=(const Captured &) = delete;
  ~Captured() {
    if (graph)
      cudaGraphDestroy(graph);
    if (stream)
      cudaStreamDestroy(stream);
  }
};

} // namespace

Status GraphReader::load() {
  GTP_RETURN_IF_ERROR(findInDriver("cuGraphNodeGetType", nodeType));
  GTP_RETURN_IF_ERROR(findInDriver("cuGraphKernelNodeGetParams", kernelParams));
  GTP_RETURN_IF_ERROR(findInDriver("cuFuncGetName", functionName, 12030));
  return findInDriver("cuKernelGetName", kernelName, 12030);
}

StatusOr<std::vector<std::string>>
GraphReader::kernels(cudaGraph_t graph) const {
  size_t count = 0;
  GTP_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  GTP_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<std::string> names;
  for (cudaGraphNode_t node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    if (nodeType(node, &type) != CUDA_SUCCESS ||
        type != CU_GRAPH_NODE_TYPE_KERNEL)
      continue;
    const char *name = nullptr;
    if (kernelParams(node, &parameters) != CUDA_SUCCESS ||
        (parameters.func
             ? functionName(&name, parameters.func)
             : kernelName(&name, parameters.kern)) != CUDA_SUCCESS ||
        !name)
      name = "a kernel without a name";
    names.emplace_back(name);
  }
  return names;
}

static Status issue(ncclComm_t comm, uint32_t ranks, uint32_t me,
                    Collective::Transport transport, std::byte *memory,
                    uint64_t bytes, cudaStream_t stream) {
  if (transport == Collective::COPY_ENGINE) {
    uint64_t piece = bytes / ranks / 16 * 16;
    GTP_NCCL(ncclAllGather(memory + me * piece, memory, piece, ncclUint8, comm,
                           stream));
  } else {
    GTP_NCCL(ncclAllReduce(memory, memory, bytes / sizeof(float), ncclFloat32,
                           ncclSum, comm, stream));
  }
  return Status::ok();
}

/// What of the surroundings may be why windows are not used.
static std::string explain() {
  std::string text;
  auto add = [&](const std::string &reason) {
    text += (text.empty() ? "" : "; ") + reason;
  };
  for (auto [variable, wrong] :
       {std::pair("NCCL_WIN_ENABLE", "0"), std::pair("NCCL_CUMEM_ENABLE", "0"),
        std::pair("NCCL_P2P_DISABLE", "1")})
    if (const char *value = std::getenv(variable);
        value && std::strcmp(value, wrong) == 0)
      add(std::string(variable) + " is " + value);
  if (const char *policy = std::getenv("NCCL_CTA_POLICY"))
    add(std::string("NCCL_CTA_POLICY is ") + policy);
  int version = 0, driver = 0;
  ncclGetVersion(&version);
  if (version < 22807)
    add("this NCCL is older than 2.28.7");
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver < 12050)
    add("the GPU's driver is older than CUDA 12.5's");
  return text.empty() ? "the GPUs may not reach each other's memory, or are of "
                        "several nodes; NCCL_DEBUG=INFO says more"
                      : text;
}

Status gtp::rt::cuda::probeTransport(ncclComm_t comm, uint32_t ranks,
                                     uint32_t me,
                                     Collective::Transport transport,
                                     std::byte *memory, uint64_t bytes) {
  GraphReader reader;
  GTP_RETURN_IF_ERROR(reader.load());
  bytes = std::min<uint64_t>(bytes, 16 * ranks);
  Captured captured;
  GTP_CUDA(cudaStreamCreateWithFlags(&captured.stream, cudaStreamNonBlocking));
  cudaStream_t stream = captured.stream;
  // The first call makes what calls need; after one of copy engines alone a
  // captured one could start before its peers are ready.
  for (int i = 0; i < 2; ++i)
    GTP_RETURN_IF_ERROR(
        issue(comm, ranks, me, transport, memory, bytes, stream));
  GTP_CUDA(cudaStreamSynchronize(stream));
  GTP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Status issued = issue(comm, ranks, me, transport, memory, bytes, stream);
  cudaError_t ended = cudaStreamEndCapture(stream, &captured.graph);
  GTP_RETURN_IF_ERROR(std::move(issued));
  GTP_RETURN_IF_ERROR(cuda::check(ended, "cudaStreamEndCapture"));
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> kernels,
                       reader.kernels(captured.graph));
  bool taken =
      transport == Collective::COPY_ENGINE ? kernels.empty() : !kernels.empty();
  for (const std::string &name : kernels)
    taken = taken && name.find("Symk") != std::string::npos;
  if (taken)
    return Status::ok();
  return Status::error("the plan's transport " +
                       Collective::Transport_Name(transport) +
                       " cannot be had: NCCL takes " +
                       (kernels.empty() ? "copy engines" : kernels.front()) +
                       " instead, since " + explain() +
                       "; compile with a --target whose links lack it");
}
