//===- TestTfmStepGradients.cpp - The training step's gradients -----------===//
//
// `test-tfm-step-gradients`: derives the training step of a float64 model (SGD,
// no clipping), runs it with learning rate 1, and compares w - w' of every
// parameter with finite differences of the forward program's loss over all
// microbatches.
//
//===----------------------------------------------------------------------===//

#include "FiniteDifference.h"
#include "TestPasses.h"

#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::test;

namespace {

constexpr double kTolerance = 1e-6;

struct TestTfmStepGradientsPass
    : public PassWrapper<TestTfmStepGradientsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTfmStepGradientsPass)

  StringRef getArgument() const final { return "test-tfm-step-gradients"; }
  StringRef getDescription() const final {
    return "compare the training step's gradients with finite differences";
  }
  void runOnOperation() override;

private:
  LogicalResult check();
  /// The loss of the forward program over all microbatches.
  double loss(func::FuncOp forward);

  llvm::StringMap<Tensor> parameters;
  Tensor tokens, labels; ///< of all microbatches
};

} // namespace

double TestTfmStepGradientsPass::loss(func::FuncOp forward) {
  Interpreter interpreter;
  interpreter.parameters = parameters;
  // Labels, or sequences that have one.
  int64_t length = 1, count = 0;
  for (auto mean : forward.getOps<tfm::CrossEntropyOp>())
    length = mean.getSequenceMean() ? labels.last() : 1;
  for (size_t i = 0; i < labels.values.size(); i += length)
    count += std::any_of(&labels.values[i], &labels.values[i] + length,
                         [](double v) { return v >= 0; });
  interpreter.values[forward.getArgument(2)] = Tensor({}, count);
  double sum = 0;
  for (int64_t j = 0; j < tokens.shape[0]; ++j) {
    for (auto [argument, all] : {std::pair(forward.getArgument(0), &tokens),
                                 std::pair(forward.getArgument(1), &labels)}) {
      Tensor slice(argument);
      std::copy_n(all->values.begin() + j * slice.values.size(),
                  slice.values.size(), slice.values.begin());
      interpreter.values[argument] = slice;
    }
    Block &body = forward.getBody().front();
    if (failed(interpreter.run(body)))
      return std::nan("");
    sum += interpreter[body.getTerminator()->getOperand(0)].values[0];
  }
  return sum;
}

LogicalResult TestTfmStepGradientsPass::check() {
  ModuleOp module = getOperation();
  auto forward = module.lookupSymbol<func::FuncOp>(tfm::kForwardFunction);
  OwningOpRef<ModuleOp> clone = module.clone();
  PassManager passes(&getContext());
  TfmDifferentiatePassOptions options;
  options.optimizer = "sgd";
  options.stateDtype = "f64";
  passes.addPass(createTfmDifferentiatePass(options));
  if (failed(passes.run(*clone)))
    return failure();
  auto step = clone->lookupSymbol<func::FuncOp>(tfm::kTrainStepFunction);

  std::mt19937_64 generator(11);
  int64_t vocabulary = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr)
                           .getAs<IntegerAttr>("vocabulary")
                           .getInt();
  Interpreter interpreter;
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    StringRef role =
        step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr).getValue();
    Tensor tensor(argument);
    if (role == "weight") {
      fillUniform(tensor, generator);
      parameters[step.getArgAttrOfType<FlatSymbolRefAttr>(index,
                                                          tfm::kParameterAttr)
                     .getValue()] = tensor;
    } else if (role == "hyper") {
      tensor.values[0] = 1; // learning rate; no decay
    } else {
      for (auto [i, id] : llvm::enumerate(tensor.values))
        id = role == "labels" && i % 4 == 2
                 ? -100
                 : static_cast<double>(generator() % vocabulary);
      (role == "labels" ? labels : tokens) = tensor;
    }
    interpreter.values[argument] = tensor;
  }
  Block &body = step.getBody().front();
  if (failed(interpreter.run(body)))
    return failure();

  Operation *results = body.getTerminator();
  for (unsigned i = 0; i < results->getNumOperands(); ++i) {
    const Tensor &value = interpreter[results->getOperand(i)];
    auto tied = step.getResultAttrOfType<IntegerAttr>(i, tfm::kTiedToAttr);
    auto name = step.getResultAttrOfType<StringAttr>(i, tfm::kResultAttr);
    if (name && name.getValue() == "loss") {
      double expected = loss(forward);
      if (!(std::abs(value.values[0] - expected) <= kTolerance * expected))
        return step.emitError("loss is ")
               << value.values[0] << ", expected " << expected;
    }
    if (!tied)
      continue;
    auto symbol = step.getArgAttrOfType<FlatSymbolRefAttr>(tied.getInt(),
                                                           tfm::kParameterAttr);
    Tensor &weight = parameters[symbol.getValue()];
    Tensor gradient = weight;
    for (auto [g, next] : llvm::zip_equal(gradient.values, value.values))
      g -= next;
    Tensor expected = finiteDifferences(weight, [&] { return loss(forward); });
    double error = relativeError(gradient, expected);
    if (!(error <= kTolerance))
      return step.emitError("gradient of ")
             << symbol << " differs from finite differences by " << error
             << ", more than " << kTolerance;
  }
  forward.emitRemark() << parameters.size() << " gradients agree";
  return success();
}

void TestTfmStepGradientsPass::runOnOperation() {
  parameters.clear();
  if (failed(check()))
    signalPassFailure();
}

void gtp::test::registerTestTfmStepGradients() {
  PassRegistration<TestTfmStepGradientsPass>();
}
