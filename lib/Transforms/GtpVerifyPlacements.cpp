//===- GtpVerifyPlacements.cpp - Every op is placed by its rule -----------===//

#include "gtp/Analysis/PlacementVerification.h"
#include "gtp/Transforms/Passes.h"

namespace gtp {
#define GEN_PASS_DEF_GTPVERIFYPLACEMENTSPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

namespace {
struct GtpVerifyPlacementsPass
    : public gtp::impl::GtpVerifyPlacementsPassBase<GtpVerifyPlacementsPass> {
  using GtpVerifyPlacementsPassBase::GtpVerifyPlacementsPassBase;

  void runOnOperation() override {
    if (!getOperation().isDeclaration() &&
        failed(gtp::verifyPlacements(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
