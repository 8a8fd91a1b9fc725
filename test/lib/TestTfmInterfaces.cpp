//===- TestTfmInterfaces.cpp - Prints placement rules and costs -----------===//
//
// `test-tfm-interfaces`: a remark an op, such as
//   (a b c) (d c) -> (a b d); matrix, 960 flops, 200 bytes
// where a letter is a factor, `!` follows one that must stay whole and `/n` one
// of n units. A rule that does not fit its op's types is an error.
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"

#include "dialects/Tfm/TfmDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

namespace {
struct TestTfmInterfacesPass
    : public PassWrapper<TestTfmInterfacesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTfmInterfacesPass)

  StringRef getArgument() const final { return "test-tfm-interfaces"; }
  StringRef getDescription() const final {
    return "print placement rules and costs";
  }
  void runOnOperation() override;
};
} // namespace

using Dims = SmallVector<unsigned>;

/// One list of factors a value, one factor a dimension; dimensions of a factor
/// without units have one size, those with units are multiples of them.
static LogicalResult checkSide(Operation *op, const PlacementRule &rule,
                               ArrayRef<Dims> sides, ValueRange values,
                               SmallVector<int64_t> &sizes) {
  if (sides.size() != values.size())
    return op->emitError("rule has ")
           << sides.size() << " values, expected " << values.size();
  for (auto [dims, value] : llvm::zip_equal(sides, values)) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(value.getType()).getShape();
    if (dims.size() != shape.size())
      return op->emitError("rule has ")
             << dims.size() << " dimensions, expected " << shape.size();
    for (auto [factor, size] : llvm::zip_equal(dims, shape)) {
      if (rule.units[factor] > 0 && size % rule.units[factor] != 0)
        return op->emitError("has a dimension of ")
               << size << ", no multiple of " << rule.units[factor] << " units";
      if (rule.units[factor] == 0 && sizes[factor] >= 0 &&
          sizes[factor] != size)
        return op->emitError("has dimensions of ")
               << sizes[factor] << " and " << size << " in one factor";
      sizes[factor] = size;
    }
  }
  return success();
}

static void printSide(raw_ostream &stream, const PlacementRule &rule,
                      ArrayRef<Dims> sides) {
  llvm::interleave(
      sides, stream,
      [&](const Dims &dims) {
        stream << '(';
        llvm::interleave(
            dims, stream,
            [&](unsigned factor) {
              stream << static_cast<char>('a' + factor);
              if (rule.factors[factor] == PlacementRule::Factor::Whole)
                stream << '!';
              if (rule.units[factor] > 0)
                stream << '/' << rule.units[factor];
            },
            " ");
        stream << ')';
      },
      " ");
}

static StringRef nameOf(OpCost::Resource resource) {
  switch (resource) {
  case OpCost::Resource::Matrix:
    return "matrix";
  case OpCost::Resource::Vector:
    return "vector";
  case OpCost::Resource::Memory:
    return "memory";
  }
  llvm_unreachable("all resources are named");
}

static LogicalResult report(PlacementOpInterface op) {
  PlacementRule rule = op.getPlacementRule();
  SmallVector<int64_t> sizes(rule.factors.size(), -1);
  if (failed(checkSide(op, rule, rule.operands, op->getOperands(), sizes)) ||
      failed(checkSide(op, rule, rule.results, op->getResults(), sizes)))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  printSide(stream, rule, rule.operands);
  stream << " -> ";
  printSide(stream, rule, rule.results);
  if (rule.linearInPartial)
    stream << ", linear";
  if (rule.acceptsStorageCuts)
    stream << ", on shards";
  OpCost cost = cast<CostOpInterface>(*op).getCost();
  stream << "; " << nameOf(cost.resource) << ", " << cost.flops << " flops, "
         << cost.bytes << " bytes";
  op->emitRemark(text);
  return success();
}

void TestTfmInterfacesPass::runOnOperation() {
  WalkResult result = getOperation()->walk([](PlacementOpInterface op) {
    return failed(report(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}

void gtp::test::registerTestTfmInterfaces() {
  PassRegistration<TestTfmInterfacesPass>();
}
