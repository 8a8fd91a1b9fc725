//===- GtpOpt.cpp - The compiler's command line ---------------------------===//

#include "gtp/Tools/GtpOpt.h"

#include "gtp/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int gtp::gtpOptMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "gtp-opt: plans the training of transformers\n", registry));
}
