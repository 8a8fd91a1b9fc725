//===- gtp-run.cpp - Runs a plan ------------------------------------------===//

#include "gtp-rt/RunTool.h"

#if GTP_WITH_CUDA
#include "gtp-rt/CudaBackend.h"
#endif

int main(int argc, char **argv) {
  using namespace gtp::rt;
#if GTP_WITH_CUDA
  GpuSupport gpus;
  gpus.count = countGpus;
  gpus.describe = describeGpu;
  gpus.create = createCudaBackend;
  return runTool(argc, argv, createHostBackend, &gpus);
#else
  return runTool(argc, argv, createHostBackend);
#endif
}
