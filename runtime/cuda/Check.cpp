//===- Check.cpp - Errors of CUDA calls as sentences ----------------------===//

#include "Check.h"

using namespace gtp;

/// The function of a call's text.
static std::string nameOf(const char *call) {
  std::string text(call);
  return text.substr(0, text.find('('));
}

Status gtp::rt::cuda::check(cudaError_t error, const char *call) {
  if (error == cudaSuccess)
    return Status::ok();
  return Status::error(nameOf(call) + " failed: " + cudaGetErrorString(error) +
                       " (" + cudaGetErrorName(error) + ")");
}

Status gtp::rt::cuda::check(cublasStatus_t status, const char *call) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return Status::ok();
  return Status::error(nameOf(call) +
                       " failed: " + cublasLtGetStatusString(status) + " (" +
                       cublasLtGetStatusName(status) + ")");
}
