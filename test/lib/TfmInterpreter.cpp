//===- TfmInterpreter.cpp - tfm programs in float64 -----------------------===//

#include "TfmMeaning.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

int64_t Tensor::elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

SmallVector<Tensor> gtp::test::interpret(Operation *op, Operands operands) {
  return llvm::TypeSwitch<Operation *, Tensors>(op)
      .Case<AdamwOp, AddBiasOp, AddOp, AddPositionsOp, AttentionGradOp,
            AttentionOp, BiasGradOp, ClipScaleOp, ConcatOp, CountLabelsOp,
            CrossEntropyGradOp, CrossEntropyOp, DocumentStartsOp,
            EmbeddingGradOp, EmbeddingOp, GeluGradOp, GeluOp, LayerNormGradOp,
            LayerNormOp, LinearDgradOp, LinearOp, LinearWgradOp, MulOp,
            PositionsGradOp, RmsNormGradOp, RmsNormOp, RopeOp, ScaleOp, SgdOp,
            SoftcapGradOp, SoftcapOp, SplitOp, SumSquaresOp, SwigluGradOp,
            SwigluOp>([&](auto op) { return meaning(op, operands); })
      .Case([&](CastOp op) { return Tensors{*operands[0]}; })
      .Case([&](FullOp op) {
        Tensors out = zeros(op);
        llvm::fill(out[0].values, op.getValue().convertToDouble());
        return out;
      })
      .Default([](Operation *op) {
        op->emitOpError("has no meaning in the test interpreter");
        return Tensors();
      });
}

LogicalResult Interpreter::runMicrobatches(MicrobatchesOp op) {
  for (Value result : op.getResults())
    values[result] = Tensor(result);
  Block &body = op.getBody().front();
  int64_t count = op.getMicrobatchCount();
  for (int64_t j = 0; j < count; ++j) {
    for (auto [argument, input] :
         llvm::zip_equal(body.getArguments(), op.getInputs())) {
      Tensor slice(argument);
      const Tensor &whole = values[input];
      std::copy_n(whole.values.begin() + j * slice.values.size(),
                  slice.values.size(), slice.values.begin());
      values[argument] = std::move(slice);
    }
    if (failed(run(body)))
      return failure();
    for (auto [result, yielded] : llvm::zip_equal(
             op.getResults(), body.getTerminator()->getOperands())) {
      const Tensor part = values[yielded];
      for (size_t i = 0; i < part.values.size(); ++i)
        values[result].values[i] += part.values[i];
    }
  }
  return success();
}

LogicalResult Interpreter::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto microbatches = dyn_cast<MicrobatchesOp>(op)) {
      if (failed(runMicrobatches(microbatches)))
        return failure();
      continue;
    }
    if (auto get = dyn_cast<GetOp>(op)) {
      values[get.getResult()] = parameters.lookup(get.getParameter());
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values.find(operand)->second);
    SmallVector<Tensor> results = interpret(&op, operands);
    if (results.size() != op.getNumResults())
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results))
      values[result] = std::move(tensor);
  }
  return success();
}
