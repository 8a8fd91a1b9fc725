//===- Context.cpp - What the kernels of one rank share -------------------===//

#include "Context.h"

#include "Check.h"
#include "CudnnAttention.h"

#include "gtp/Support/RoundUp.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt::cuda;

Context::~Context() {
  for (cudaStream_t stream : streams)
    if (stream)
      cudaStreamDestroy(stream);
  if (handle)
    cublasLtDestroy(handle);
  if (hostFault)
    cudaFreeHost(hostFault);
}

Status Context::create() {
  void *host = nullptr;
  GTP_CUDA(cudaMallocHost(&host, sizeof(Fault)));
  hostFault = static_cast<Fault *>(host);
  std::memset(host, 0, sizeof(Fault));
  GTP_CUDA(cublasLtCreate(&handle));
  return Status::ok();
}

Status Context::setFault(void *memory) {
  deviceFault = static_cast<Fault *>(memory);
  GTP_CUDA(cudaMemset(memory, 0, sizeof(Fault)));
  return Status::ok();
}

Status Context::fetchFault(cudaStream_t to) const {
  GTP_CUDA(cudaMemcpyAsync(hostFault, deviceFault, sizeof(Fault),
                           cudaMemcpyDeviceToHost, to));
  return Status::ok();
}

Status Context::createStreams(
    const std::vector<std::pair<uint32_t, int32_t>> &wanted) {
  int least = 0, greatest = 0;
  GTP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (auto [number, priority] : wanted) {
    if (streams.size() <= number)
      streams.resize(number + 1);
    // CUDA's priorities grow downwards.
    int value = std::max(greatest, std::min(least, -priority));
    GTP_CUDA(cudaStreamCreateWithPriority(&streams[number],
                                          cudaStreamNonBlocking, value));
  }
  workspaces.resize(streams.size());
  return Status::ok();
}

StatusOr<Cudnn *> Context::cudnn() {
  if (!cudnnLibrary) {
    GTP_ASSIGN_OR_RETURN(cudnnLibrary, Cudnn::load());
  }
  return cudnnLibrary.get();
}

std::string Context::attentionText() const {
  std::string text;
  for (const std::set<std::string> &ways : attentionWays) {
    if (&ways != attentionWays && !ways.empty())
      text += "; gradient ";
    for (const std::string &way : ways)
      text += (&way == &*ways.begin() ? "" : " and ") + way;
  }
  return text;
}

size_t Context::addConstant(const void *key, uint64_t variant,
                            std::vector<float> values) {
  constants.push_back(std::move(values));
  return numbers[{key, variant}] = constants.size() - 1;
}

bool Context::findConstant(const void *key, uint64_t variant,
                           size_t &number) const {
  auto found = numbers.find({key, variant});
  if (found == numbers.end())
    return false;
  number = found->second;
  return true;
}

uint64_t Context::constantBytes() const {
  uint64_t bytes = 0;
  for (const std::vector<float> &values : constants)
    bytes += roundUp(values.size() * sizeof(float), 256);
  return bytes;
}

Status Context::uploadConstants(std::byte *memory) {
  for (std::vector<float> &values : constants) {
    uint64_t bytes = values.size() * sizeof(float);
    GTP_CUDA(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice));
    addresses.push_back(reinterpret_cast<const float *>(memory));
    memory += roundUp(bytes, 256);
    values = {};
  }
  return Status::ok();
}
