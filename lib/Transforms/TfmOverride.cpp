//===- TfmOverride.cpp - What is decided for single parameters ------------===//

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Import/Overrides.h"
#include "gtp/Transforms/Passes.h"

namespace gtp {
#define GEN_PASS_DEF_TFMOVERRIDEPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

namespace {
struct TfmOverridePass
    : public gtp::impl::TfmOverridePassBase<TfmOverridePass> {
  using TfmOverridePassBase::TfmOverridePassBase;

  void runOnOperation() override {
    gtp::OverrideOptions options{freeze, replicate, overrides};
    if (failed(gtp::applyOverrides(getOperation(), options)))
      signalPassFailure();
  }
};
} // namespace
