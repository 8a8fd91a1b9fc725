//===- Kernel.cpp - How the host backend calls a kernel -------------------===//

#include "Kernel.h"

#include <limits>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt::host;

Status KernelSite::needFloat32() const {
  for (size_t i = 0; i < count(); ++i)
    if (isFloat(operand(i).dtype()) && operand(i).dtype() != pb::F32)
      return Status::error("operand " + text(i) +
                           " is neither f32 nor bf16, which the host backend "
                           "computes in");
  return Status::ok();
}

Status KernelSite::needBlasSizes() const {
  constexpr uint64_t most = std::numeric_limits<int>::max();
  for (size_t i = 0; i < count(); ++i) {
    Shape s = shape(i);
    if (operand(i).dtype() == pb::F32 &&
        (s.rows > most || s.columns > most || s.pitch > most))
      return Status::error(
          "operand " + text(i) +
          " has a dimension above 2^31 - 1, the most the BLAS library takes");
  }
  return Status::ok();
}

const KernelEntry *gtp::rt::host::lookupEntry(std::string_view name) {
  for (const std::vector<KernelEntry> *family :
       {&activationKernels(), &attentionKernels(), &elementwiseKernels(),
        &documentKernels(), &embeddingKernels(), &linearKernels(),
        &lossKernels(), &normKernels(), &optimizerKernels(), &ropeKernels()})
    for (const KernelEntry &entry : *family)
      if (entry.name == name)
        return &entry;
  return nullptr;
}

double *gtp::rt::host::threadSums(size_t count) {
  thread_local std::vector<double> sums;
  if (sums.size() < count)
    sums.resize(count);
  return sums.data();
}
