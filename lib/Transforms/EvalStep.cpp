//===- EvalStep.cpp - The held-out loss, and what it shares with a step ---===//

#include "EvalStep.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

Location tfm::nameLoc(MLIRContext *context, const Twine &name) {
  return NameLoc::get(StringAttr::get(context, name));
}

RankedTensorType tfm::stackMicrobatches(RankedTensorType one,
                                        int64_t microbatches) {
  SmallVector<int64_t> shape = {microbatches};
  llvm::append_range(shape, one.getShape());
  return RankedTensorType::get(shape, one.getElementType());
}

Value tfm::createCount(OpBuilder &builder, func::FuncOp forward, Value labels) {
  bool sequences =
      llvm::any_of(forward.getOps<CrossEntropyOp>(), [&](CrossEntropyOp loss) {
        return loss.getCount() == forward.getArgument(2) &&
               loss.getSequenceMean();
      });
  return CountLabelsOp::create(
      builder, nameLoc(builder.getContext(), "count_labels"),
      forward.getArgumentTypes()[2], labels, sequences);
}

SmallVector<Operation *>
tfm::cloneForward(OpBuilder &builder, func::FuncOp forward,
                  const DenseMap<StringAttr, Value> &weights,
                  IRMapping &mapping) {
  SmallVector<Operation *> ops;
  for (Operation &op : forward.getBody().front().without_terminator()) {
    if (auto get = dyn_cast<GetOp>(op))
      mapping.map(get.getResult(),
                  weights.lookup(get.getParameterAttr().getAttr()));
    else
      ops.push_back(builder.clone(op, mapping));
  }
  return ops;
}

func::FuncOp tfm::buildEvalStep(func::FuncOp forward, int64_t microbatches) {
  OpBuilder builder(forward);
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  SmallVector<Location> locations;
  auto addArgument = [&](Type type, Location loc, StringRef role,
                         ParameterOp parameter = {}) {
    NamedAttrList fields;
    fields.set(kArgAttr, builder.getStringAttr(role));
    if (parameter)
      fields.set(kParameterAttr,
                 FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    types.push_back(type);
    attrs.push_back(fields.getDictionary(builder.getContext()));
    locations.push_back(loc);
  };
  SmallVector<StringAttr> names;
  for (auto parameter :
       forward->getParentOfType<ModuleOp>().getOps<ParameterOp>()) {
    names.push_back(parameter.getSymNameAttr());
    addArgument(parameter.getType(), parameter.getLoc(), "weight", parameter);
  }
  // Tokens and labels; the count is computed.
  auto ids = forward.getArguments().take_front(2);
  const StringRef roles[] = {"tokens", "labels"};
  for (auto [argument, role] : llvm::zip_equal(ids, roles))
    addArgument(stackMicrobatches(cast<RankedTensorType>(argument.getType()),
                                  microbatches),
                argument.getLoc(), role);
  Value forwardLoss = forward.getBody().front().getTerminator()->getOperand(0);
  auto named = [&](StringRef result) {
    return builder.getDictionaryAttr(
        builder.getNamedAttr(kResultAttr, builder.getStringAttr(result)));
  };
  auto step = func::FuncOp::create(
      builder, forward.getLoc(), kEvalStepFunction,
      builder.getFunctionType(
          types, {forwardLoss.getType(), forward.getArgumentTypes()[2]}));
  step.setArgAttrsAttr(builder.getArrayAttr(attrs));
  DictionaryAttr results[] = {named("loss"), named("count")};
  step.setAllResultAttrs(ArrayRef<DictionaryAttr>(results));
  Block &entry = step.getBody().emplaceBlock();
  entry.addArguments(types, locations);
  ValueRange all = entry.getArguments();
  DenseMap<StringAttr, Value> weights;
  for (auto [name, weight] : llvm::zip(names, all))
    weights[name] = weight;

  builder.setInsertionPointToStart(&entry);
  ValueRange inputs = all.drop_front(names.size());
  Value count = createCount(builder, forward, inputs[1]);
  auto sum = MicrobatchesOp::create(
      builder, nameLoc(builder.getContext(), "microbatches"),
      forwardLoss.getType(), inputs);
  func::ReturnOp::create(builder, step.getLoc(), {sum.getResult(0), count});

  Block &body = sum.getBody().emplaceBlock();
  builder.setInsertionPointToStart(&body);
  IRMapping mapping;
  for (BlockArgument argument : ids)
    mapping.map(argument,
                body.addArgument(argument.getType(), argument.getLoc()));
  mapping.map(forward.getArgument(2), count);
  cloneForward(builder, forward, weights, mapping);
  YieldOp::create(builder, sum.getLoc(), mapping.lookup(forwardLoss));
  return step;
}
