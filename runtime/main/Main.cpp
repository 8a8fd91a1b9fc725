//===- Main.cpp - The programs that train ---------------------------------===//

#include "gtp-rt/Main.h"
#include "gtp-rt/RunTool.h"
#include "gtp/Plan/PlanFile.h"

#if GTP_WITH_CUDA
#include "gtp-rt/CudaBackend.h"
#endif

using namespace gtp::rt;

static int runWithBackends(int argc, char **argv, const BuiltPlan *built) {
#if GTP_WITH_CUDA
  GpuSupport gpus;
  gpus.count = countGpus;
  gpus.describe = describeGpu;
  gpus.identify = identifyGpu;
  gpus.create = createCudaBackend;
  return runTool(argc, argv, createHostBackend, &gpus, built);
#else
  return runTool(argc, argv, createHostBackend, nullptr, built);
#endif
}

int gtp::rt::runMain(int argc, char **argv) {
  return runWithBackends(argc, argv, nullptr);
}

int gtp::rt::runBuiltPlan(int argc, char **argv, plan::pb::Plan plan,
                          const char *hash) {
  plan::sealPlan(plan);
  BuiltPlan built{&plan, hash};
  return runWithBackends(argc, argv, &built);
}
