//===- PlanStats.cpp - Claims and statistics of a program -----------------===//

#include "gtp/Conversion/PlanStats.h"

#include "mlir/IR/Builders.h"

using namespace gtp;
using namespace mlir;

static DictionaryAttr with(MLIRContext *context, DictionaryAttr fields,
                           StringRef name, int64_t value) {
  NamedAttrList list(fields);
  list.set(name, Builder(context).getI64IntegerAttr(value));
  return list.getDictionary(context);
}

void gtp::setClaim(planir::ProgramOp program, StringRef name, int64_t value) {
  program.setClaimsAttr(
      with(program.getContext(), program.getClaimsAttr(), name, value));
}

void gtp::setStat(planir::ProgramOp program, StringRef name, int64_t value) {
  program.setStatsAttr(
      with(program.getContext(), program.getStatsAttr(), name, value));
}
