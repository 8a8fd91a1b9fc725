//===- TfmDifferentiate.cpp - From the forward program to the step --------===//

#include "Backward.h"
#include "EvalStep.h"
#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gtp {
#define GEN_PASS_DEF_TFMDIFFERENTIATEPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

namespace {

/// A parameter and its values in the training step. Positions are those of
/// arguments of the function, and of the results that replace them.
struct Trained {
  ParameterOp op;
  unsigned weight = 0;
  std::optional<unsigned> master, remainder;
  SmallVector<unsigned, 2> states;
};

/// A parameter that is not trained, and its argument.
struct Frozen {
  ParameterOp op;
  unsigned weight = 0;
};

struct TfmDifferentiatePass
    : public gtp::impl::TfmDifferentiatePassBase<TfmDifferentiatePass> {
  using TfmDifferentiatePassBase::TfmDifferentiatePassBase;

  void runOnOperation() override;

private:
  LogicalResult readOptions();
  LogicalResult readModule();
  /// Whether all losses take the count for the same.
  LogicalResult checkLoss();
  /// Whether a parameter can have a master of `stateType`.
  LogicalResult checkMaster(ParameterOp parameter);
  void buildSignature();
  LogicalResult buildBody();
  /// The region of one microbatch; yields a gradient a parameter, then the
  /// loss.
  FailureOr<MicrobatchesOp> buildMicrobatches(OpBuilder &builder, Value count);
  void buildUpdate(OpBuilder &builder, MicrobatchesOp sums, Value count);

  Type stateType;
  /// Masters are the bfloat16 weights and remainders.
  bool splitMasters = false;
  Type gradientOption; ///< null: the parameter's own
  func::FuncOp forward, step;
  int64_t microbatches = 1;
  SmallVector<Trained> parameters;
  SmallVector<Frozen> frozen;
  SmallVector<Type> argumentTypes;
  SmallVector<Attribute> argumentAttrs;
  unsigned tokens = 0, labels = 0, hyper = 0; ///< positions of arguments
};

} // namespace

//===----------------------------------------------------------------------===//
// What is given
//===----------------------------------------------------------------------===//

LogicalResult TfmDifferentiatePass::readOptions() {
  ModuleOp module = getOperation();
  MLIRContext *context = &getContext();
  auto parse = [&](StringRef option, StringRef name) -> Type {
    if (name == "f32")
      return Float32Type::get(context);
    if (name == "bf16")
      return BFloat16Type::get(context);
    if (name == "f64")
      return Float64Type::get(context);
    module.emitError() << "tfm-differentiate: " << option << " is \"" << name
                       << "\", expected f32, bf16"
                       << (option == "state-dtype" ? ", f64 or split"
                                                   : " or f64");
    return {};
  };
  if (optimizer != "adamw" && optimizer != "sgd")
    return module.emitError() << "tfm-differentiate: optimizer is \""
                              << optimizer << "\", expected adamw or sgd";
  if (attentionBackward != "deterministic" && attentionBackward != "fast")
    return module.emitError()
           << "tfm-differentiate: attention-backward is \"" << attentionBackward
           << "\", expected deterministic or fast";
  if (!(clipNorm >= 0) || std::isinf(clipNorm))
    return module.emitError() << "tfm-differentiate: clip-norm is " << clipNorm
                              << ", expected 0 (off) or more";
  splitMasters = stateDtype == "split";
  stateType =
      parse("state-dtype", splitMasters ? "f32" : StringRef(stateDtype));
  if (!stateType)
    return failure();
  if (!gradDtype.empty()) {
    gradientOption = parse("grad-dtype", gradDtype);
    if (!gradientOption)
      return failure();
  }
  return success();
}

LogicalResult TfmDifferentiatePass::readModule() {
  ModuleOp module = getOperation();
  forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
  if (!forward || !forward.getBody().hasOneBlock())
    return module.emitError() << "tfm-differentiate: expected a function @"
                              << kForwardFunction << " of one block";
  for (StringRef name : {kTrainStepFunction, kEvalStepFunction})
    if (Operation *other = module.lookupSymbol(name))
      return other->emitError()
             << "tfm-differentiate: there is a @" << name << " already";

  FunctionType type = forward.getFunctionType();
  auto isIds = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 2 && tensor.hasStaticShape() &&
           tensor.getElementType().isInteger(32);
  };
  auto isScalar = [](Type type, auto isElement) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0 &&
           isElement(tensor.getElementType());
  };
  if (type.getNumInputs() != 3 || type.getNumResults() != 1 ||
      !isIds(type.getInput(0)) || type.getInput(0) != type.getInput(1) ||
      !isScalar(type.getInput(2), [](Type t) { return t.isInteger(64); }) ||
      !isScalar(type.getResult(0),
                [](Type t) { return t.isF32() || t.isF64(); }))
    return forward.emitError()
           << "tfm-differentiate: @" << kForwardFunction << " has type " << type
           << ", expected (tokens: tensor<BxTxi32>, labels: tensor<BxTxi32>, "
              "count: tensor<i64>) -> tensor<f32>";

  if (auto model = module->getAttrOfType<DictionaryAttr>(kModelAttr))
    if (Attribute count = model.get("microbatches")) {
      auto integer = dyn_cast<IntegerAttr>(count);
      if (!integer || integer.getValue().getSExtValue() < 1)
        return module.emitError() << "tfm-differentiate: microbatches is "
                                  << count << ", expected 1 or more";
      microbatches = integer.getValue().getSExtValue();
    }
  for (auto parameter : module.getOps<ParameterOp>()) {
    if (parameter.getFrozen())
      frozen.push_back({parameter});
    else if (failed(checkMaster(parameter)))
      return failure();
    else
      parameters.emplace_back().op = parameter;
  }
  if (parameters.empty() && !frozen.empty())
    return module.emitError()
           << "tfm-differentiate: all " << frozen.size()
           << " parameters are frozen, so there is nothing to train; leave at "
              "least one out";
  return checkLoss();
}

LogicalResult TfmDifferentiatePass::checkMaster(ParameterOp parameter) {
  Type weight = parameter.getType().getElementType();
  if (splitMasters && !weight.isBF16())
    return parameter.emitOpError()
           << "has element type " << weight
           << ": state-dtype split keeps a float32 master as its bf16 weight "
              "and the 16 bits that are left; expected bf16, or state-dtype "
              "f32";
  if (weight.getIntOrFloatBitWidth() > stateType.getIntOrFloatBitWidth())
    return parameter.emitOpError()
           << "has element type " << weight << ", of which a master of "
           << stateType
           << " would lose bits; expected a state-dtype that is no narrower";
  return success();
}

LogicalResult TfmDifferentiatePass::checkLoss() {
  CrossEntropyOp first;
  for (auto loss : forward.getOps<CrossEntropyOp>()) {
    if (loss.getCount() != forward.getArgument(2))
      continue;
    if (!first)
      first = loss;
    if (loss.getSequenceMean() == first.getSequenceMean())
      continue;
    auto counted = [](CrossEntropyOp op) {
      return op.getSequenceMean() ? "sequences" : "labels";
    };
    InFlightDiagnostic diag = loss.emitOpError("takes the count as that of ")
                              << counted(loss) << ", another loss as that of "
                              << counted(first)
                              << "; expected one kind of mean";
    diag.attachNote(first.getLoc()) << "the other loss";
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

void TfmDifferentiatePass::buildSignature() {
  Builder builder(&getContext());
  SmallVector<Location> locations;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  auto addArgument = [&](Type type, StringRef role, Location loc,
                         ArrayRef<NamedAttribute> more = {}) {
    SmallVector<NamedAttribute> attrs(more);
    attrs.push_back(
        builder.getNamedAttr(kArgAttr, builder.getStringAttr(role)));
    argumentTypes.push_back(type);
    argumentAttrs.push_back(builder.getDictionaryAttr(attrs));
    locations.push_back(loc);
    return static_cast<unsigned>(argumentTypes.size() - 1);
  };
  // State comes first, so argument i is replaced by result i.
  auto addState = [&](Type type, StringRef role, ParameterOp parameter,
                      StringRef state = "") {
    SmallVector<NamedAttribute> attrs = {builder.getNamedAttr(
        kParameterAttr, FlatSymbolRefAttr::get(parameter.getSymNameAttr()))};
    if (!state.empty())
      attrs.push_back(
          builder.getNamedAttr(kStateAttr, builder.getStringAttr(state)));
    unsigned index = addArgument(type, role, parameter.getLoc(), attrs);
    resultTypes.push_back(type);
    resultAttrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kTiedToAttr, builder.getI64IntegerAttr(index))));
    return index;
  };
  for (Trained &trained : parameters) {
    RankedTensorType type = trained.op.getType();
    RankedTensorType state = withElementType(type, stateType);
    trained.weight = addState(type, "weight", trained.op);
    if (splitMasters)
      trained.remainder = addState(withElementType(type, builder.getI16Type()),
                                   "remainder", trained.op);
    else if (type != state)
      trained.master = addState(state, "master", trained.op);
    if (optimizer == "adamw")
      trained.states = {addState(state, "state", trained.op, "m"),
                        addState(state, "state", trained.op, "v")};
  }
  // What is not trained has no result: the step cannot change it.
  for (Frozen &parameter : frozen)
    parameter.weight =
        addArgument(parameter.op.getType(), "weight", parameter.op.getLoc(),
                    builder.getNamedAttr(
                        kParameterAttr,
                        FlatSymbolRefAttr::get(parameter.op.getSymNameAttr())));
  auto ids = cast<RankedTensorType>(forward.getArgumentTypes()[0]);
  Type allIds = stackMicrobatches(ids, microbatches);
  tokens = addArgument(allIds, "tokens", forward.getArgument(0).getLoc());
  labels = addArgument(allIds, "labels", forward.getArgument(1).getLoc());
  hyper = addArgument(RankedTensorType::get({8}, builder.getF32Type()), "hyper",
                      nameLoc(&getContext(), "hyper"));

  auto addResult = [&](Type type, StringRef name) {
    resultTypes.push_back(type);
    resultAttrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kResultAttr, builder.getStringAttr(name))));
  };
  addResult(forward.getResultTypes()[0], "loss");
  addResult(RankedTensorType::get({}, builder.getF32Type()), "grad_norm");
  addResult(forward.getArgumentTypes()[2], "count");

  OpBuilder moduleBuilder(forward);
  step =
      func::FuncOp::create(moduleBuilder, forward.getLoc(), kTrainStepFunction,
                           builder.getFunctionType(argumentTypes, resultTypes));
  step.setArgAttrsAttr(builder.getArrayAttr(argumentAttrs));
  step.setAllResultAttrs(resultAttrs);
  step.getBody().emplaceBlock().addArguments(argumentTypes, locations);
}

FailureOr<MicrobatchesOp>
TfmDifferentiatePass::buildMicrobatches(OpBuilder &builder, Value count) {
  Value loss = forward.getBody().front().getTerminator()->getOperand(0);
  auto gradientElement = [&](const Trained &trained) {
    ParameterOp op = trained.op;
    return gradientOption ? gradientOption : op.getType().getElementType();
  };
  SmallVector<Type> types;
  for (Trained &trained : parameters)
    types.push_back(
        withElementType(trained.op.getType(), gradientElement(trained)));
  types.push_back(loss.getType());
  auto sums = MicrobatchesOp::create(
      builder, nameLoc(&getContext(), "microbatches"), types,
      ValueRange{step.getArgument(tokens), step.getArgument(labels)});

  OpBuilder::InsertionGuard guard(builder);
  Block &body = sums.getBody().emplaceBlock();
  builder.setInsertionPointToStart(&body);
  IRMapping mapping;
  for (BlockArgument argument : forward.getArguments().take_front(2))
    mapping.map(argument,
                body.addArgument(argument.getType(), argument.getLoc()));
  mapping.map(forward.getArgument(2), count);

  Backward backward(builder, {gradientOption, attentionBackward == "fast"});
  DenseMap<StringAttr, Value> weights;
  for (Trained &trained : parameters) {
    weights[trained.op.getSymNameAttr()] = step.getArgument(trained.weight);
    backward.addInput(step.getArgument(trained.weight));
  }
  for (Frozen &parameter : frozen)
    weights[parameter.op.getSymNameAttr()] = step.getArgument(parameter.weight);
  SmallVector<Operation *> ops =
      cloneForward(builder, forward, weights, mapping);
  loss = mapping.lookup(loss);
  if (failed(backward.run(ops, loss)))
    return failure();

  auto unused = [](ParameterOp op) {
    return op.emitOpError(
        "is a parameter that the loss does not depend on; remove it");
  };
  for (Frozen &parameter : frozen)
    if (step.getArgument(parameter.weight).use_empty())
      return unused(parameter.op);
  SmallVector<Value> yielded;
  for (Trained &trained : parameters) {
    Value weight = step.getArgument(trained.weight);
    if (!backward.reaches(weight))
      return unused(trained.op);
    yielded.push_back(backward.takeGradient(
        weight, gradientElement(trained),
        nameLoc(&getContext(), trained.op.getSymName() + ".grad")));
  }
  yielded.push_back(loss);
  YieldOp::create(builder, sums.getLoc(), yielded);
  return sums;
}

void TfmDifferentiatePass::buildUpdate(OpBuilder &builder, MicrobatchesOp sums,
                                       Value count) {
  MLIRContext *context = &getContext();
  auto scalar = [](Type element) { return RankedTensorType::get({}, element); };
  Type sumType = scalar(builder.getF64Type());
  ValueRange gradients = sums.getResults().drop_back();
  SmallVector<Value> squares;
  for (auto [trained, gradient] : llvm::zip_equal(parameters, gradients))
    squares.push_back(SumSquaresOp::create(
        builder, nameLoc(context, trained.op.getSymName() + ".sum_squares"),
        sumType, gradient));
  Value square = AddOp::create(
      builder, nameLoc(context, "grad_norm.sum_squares"), sumType, squares);
  auto clip = ClipScaleOp::create(
      builder, nameLoc(context, "grad_norm.clip"), scalar(builder.getF32Type()),
      scalar(builder.getF32Type()), square, builder.getF64FloatAttr(clipNorm));

  SmallVector<Value> results;
  for (auto [trained, gradient] : llvm::zip_equal(parameters, gradients)) {
    Location loc = nameLoc(context, trained.op.getSymName() + ".update");
    Value master = step.getArgument(trained.master.value_or(trained.weight));
    Value scale = clip.getScale(), hypers = step.getArgument(hyper);
    // Biases, norms and other vectors do not decay.
    UnitAttr decay = trained.op.getType().getRank() >= 2 ? builder.getUnitAttr()
                                                         : UnitAttr();
    Type type = master.getType();
    Type compute = trained.master ? Type(trained.op.getType()) : Type();
    auto append = [&](Value newMaster, Value published, ValueRange states) {
      if (published)
        results.push_back(published);
      results.push_back(newMaster);
      llvm::append_range(results, states);
    };
    if (trained.remainder) {
      // Its results are in the order of what they replace.
      Value remainder = step.getArgument(*trained.remainder);
      Operation *update;
      if (optimizer == "adamw") {
        Value m = step.getArgument(trained.states[0]);
        Value v = step.getArgument(trained.states[1]);
        update = AdamwSplitOp::create(
            builder, loc, type, remainder.getType(), m.getType(), v.getType(),
            master, remainder, m, v, gradient, hypers, scale, decay);
      } else {
        update =
            SgdSplitOp::create(builder, loc, type, remainder.getType(), master,
                               remainder, gradient, hypers, scale, decay);
      }
      llvm::append_range(results, update->getResults());
    } else if (optimizer == "adamw") {
      Value m = step.getArgument(trained.states[0]);
      Value v = step.getArgument(trained.states[1]);
      auto update =
          AdamwOp::create(builder, loc, type, type, type, compute, master, m, v,
                          gradient, hypers, scale, decay);
      append(update.getNewMaster(), update.getCompute(),
             {update.getNewM(), update.getNewV()});
    } else {
      auto update = SgdOp::create(builder, loc, type, compute, master, gradient,
                                  hypers, scale, decay);
      append(update.getNewMaster(), update.getCompute(), {});
    }
  }
  llvm::append_range(
      results, ValueRange{sums.getResults().back(), clip.getNorm(), count});
  func::ReturnOp::create(builder, step.getLoc(), results);
}

LogicalResult TfmDifferentiatePass::buildBody() {
  OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
  Value count = createCount(builder, forward, step.getArgument(labels));
  FailureOr<MicrobatchesOp> sums = buildMicrobatches(builder, count);
  if (failed(sums))
    return failure();
  builder.setInsertionPointToEnd(&step.getBody().front());
  buildUpdate(builder, *sums, count);
  return success();
}

void TfmDifferentiatePass::runOnOperation() {
  parameters.clear();
  frozen.clear();
  argumentTypes.clear();
  argumentAttrs.clear();
  microbatches = 1;
  gradientOption = {};
  if (failed(readOptions()) || failed(readModule()))
    return signalPassFailure();
  buildSignature();
  if (failed(buildBody()))
    return signalPassFailure();
  buildEvalStep(forward, microbatches);
  forward.erase();
}
