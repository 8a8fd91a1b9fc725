//===- TestTfmVjp.cpp - Vector-Jacobian products by finite differences ----===//
//
// `test-tfm-vjp`: every function holds one differentiable op on its arguments,
// which attributes may describe: `test.range = n` (ids below n), `test.masked`
// (some labels are not counted), `test.value = n`, `test.values = array<i64:
// ..>`. Results that it returns get random cotangents.
//
//===----------------------------------------------------------------------===//

#include "FiniteDifference.h"
#include "TestPasses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::test;

namespace {

constexpr double kTolerance = 1e-6;

class VjpCase {
public:
  VjpCase(func::FuncOp function, Operation *op, double perturb)
      : function(function), op(op), perturb(perturb) {}

  LogicalResult check();

private:
  void fillArguments();
  /// The cotangents applied to the returned values, at the arguments.
  double loss();
  /// Products of the operands that `needed` names; empty on failure.
  FailureOr<SmallVector<std::optional<Tensor>>> products(ArrayRef<bool> needed);
  LogicalResult compare(unsigned operand, const std::optional<Tensor> &found);

  func::FuncOp function;
  Operation *op;
  double perturb;
  std::mt19937_64 generator{7};
  SmallVector<Tensor> arguments;
  SmallVector<std::optional<Tensor>> cotangents; ///< one a result of `op`
};

struct TestTfmVjpPass
    : public PassWrapper<TestTfmVjpPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTfmVjpPass)

  TestTfmVjpPass() = default;
  TestTfmVjpPass(const TestTfmVjpPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-tfm-vjp"; }
  StringRef getDescription() const final {
    return "compare vector-Jacobian products with finite differences";
  }
  void runOnOperation() override;

  Option<bool> all{*this, "all",
                   llvm::cl::desc("fail for an op that has no case")};
  Option<double> perturb{
      *this, "perturb",
      llvm::cl::desc("relative error added to every product, to see it found"),
      llvm::cl::init(0)};
};

} // namespace

static bool isFloat(Value value) {
  return isa<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

void VjpCase::fillArguments() {
  for (BlockArgument argument : function.getArguments()) {
    Tensor &tensor = arguments.emplace_back(argument);
    unsigned index = argument.getArgNumber();
    if (auto values =
            function.getArgAttrOfType<DenseI64ArrayAttr>(index, "test.values"))
      llvm::copy(values.asArrayRef().take_front(tensor.values.size()),
                 tensor.values.begin());
    else if (auto value =
                 function.getArgAttrOfType<IntegerAttr>(index, "test.value"))
      llvm::fill(tensor.values, value.getInt());
    else if (auto range =
                 function.getArgAttrOfType<IntegerAttr>(index, "test.range"))
      for (auto [i, id] : llvm::enumerate(tensor.values)) {
        id = generator() % range.getInt();
        if (function.getArgAttr(index, "test.masked") && i % 3 == 1)
          id = -100;
      }
    else
      fillUniform(tensor, generator);
  }
  ValueRange returned =
      function.getBody().front().getTerminator()->getOperands();
  for (Value result : op->getResults()) {
    cotangents.emplace_back();
    if (llvm::is_contained(returned, result))
      fillUniform(cotangents.back().emplace(result), generator);
  }
}

double VjpCase::loss() {
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands())
    operands.push_back(&arguments[cast<BlockArgument>(operand).getArgNumber()]);
  double sum = 0;
  for (auto [result, cotangent] :
       llvm::zip_equal(interpret(op, operands), cotangents))
    if (cotangent)
      for (auto [a, b] : llvm::zip_equal(result.values, cotangent->values))
        sum += a * b;
  return sum;
}

FailureOr<SmallVector<std::optional<Tensor>>>
VjpCase::products(ArrayRef<bool> needed) {
  OwningOpRef<func::FuncOp> clone = function.clone();
  Block &block = clone->getBody().front();
  Operation *cloned = &block.front();
  OpBuilder builder = OpBuilder::atBlockTerminator(&block);

  Interpreter interpreter;
  for (auto [argument, tensor] :
       llvm::zip_equal(block.getArguments(), arguments))
    interpreter.values[argument] = tensor;
  SmallVector<Value> given;
  for (auto [result, cotangent] :
       llvm::zip_equal(cloned->getResults(), cotangents)) {
    given.push_back(Value());
    if (!cotangent)
      continue;
    given.back() = block.addArgument(result.getType(), result.getLoc());
    interpreter.values[given.back()] = *cotangent;
  }
  SmallVector<Value> built =
      cast<tfm::DifferentiableOpInterface>(cloned).buildVjp(
          builder, given, needed, {builder.getF64Type()});
  if (built.empty())
    return failure();
  if (built.size() != cloned->getNumOperands())
    return op->emitError("its product has ")
           << built.size() << " values, expected " << cloned->getNumOperands();
  if (failed(interpreter.run(block)))
    return failure();

  SmallVector<std::optional<Tensor>> result;
  for (auto [index, value] : llvm::enumerate(built)) {
    result.emplace_back();
    if (!value)
      continue;
    if (value.getType() != op->getOperand(index).getType())
      return op->emitError("its product for operand ")
             << index << " has type " << value.getType() << ", expected "
             << op->getOperand(index).getType();
    result.back() = interpreter[value];
  }
  return result;
}

LogicalResult VjpCase::compare(unsigned operand,
                               const std::optional<Tensor> &found) {
  if (!found)
    return op->emitError("has no product for operand ") << operand;
  Tensor scaled = *found;
  for (double &value : scaled.values)
    value *= 1 + perturb;
  auto argument = cast<BlockArgument>(op->getOperand(operand));
  Tensor expected = finiteDifferences(arguments[argument.getArgNumber()],
                                      [&] { return loss(); });
  double error = relativeError(scaled, expected);
  if (!(error <= kTolerance))
    return op->emitError("its product for operand ")
           << operand << " differs from finite differences by " << error
           << ", more than " << kTolerance;
  return success();
}

LogicalResult VjpCase::check() {
  fillArguments();
  unsigned count = op->getNumOperands();
  SmallVector<bool> floats;
  for (Value operand : op->getOperands()) {
    if (!isa<BlockArgument>(operand) ||
        llvm::count(op->getOperands(), operand) != 1)
      return op->emitError("expects distinct arguments as operands");
    floats.push_back(isFloat(operand));
  }
  auto all = products(floats);
  if (failed(all))
    return failure();
  for (unsigned i = 0; i < count; ++i) {
    if (!floats[i])
      continue;
    // An operand alone: the same, and nothing that was not asked for.
    SmallVector<bool> one(count, false);
    one[i] = true;
    auto alone = products(one);
    if (failed(alone) || failed(compare(i, (*all)[i])) ||
        failed(compare(i, (*alone)[i])))
      return failure();
    if (llvm::count_if(*alone, [](auto &tensor) { return !!tensor; }) != 1)
      return op->emitError("builds products that are not needed");
  }
  op->emitRemark() << llvm::count(floats, true) << " products agree";
  return success();
}

void TestTfmVjpPass::runOnOperation() {
  DenseSet<OperationName> seen;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    Block &block = function.getBody().front();
    Operation *op = &block.front();
    if (llvm::range_size(block) != 2 ||
        !isa<tfm::DifferentiableOpInterface>(op)) {
      function.emitError("expects one differentiable op");
      return signalPassFailure();
    }
    seen.insert(op->getName());
    if (failed(VjpCase(function, op, perturb).check()))
      return signalPassFailure();
  }
  if (!all)
    return;
  for (RegisteredOperationName name :
       getContext().getRegisteredOperationsByDialect("tfm"))
    if (name.hasInterface<tfm::DifferentiableOpInterface>() &&
        !seen.contains(name)) {
      getOperation().emitError() << name.getStringRef() << " has no case";
      signalPassFailure();
    }
}

void gtp::test::registerTestTfmVjp() { PassRegistration<TestTfmVjpPass>(); }
