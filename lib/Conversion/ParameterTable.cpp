//===- ParameterTable.cpp - Parameters and the values that are theirs -----===//

#include "ParameterTable.h"

#include "dialects/Gtp/GtpDialect.h"
#include "gtp/Analysis/CostModel.h"

using namespace gtp;
using namespace mlir;

FailureOr<ParameterTable> ParameterTable::build(func::FuncOp step,
                                                tfm::MicrobatchesOp body) {
  ParameterTable table;
  if (failed(table.readArguments(step)))
    return failure();
  table.traceWeights(step.getBody().front());
  table.traceWeights(body.getBody().front());
  if (failed(table.readUpdates(step, body)))
    return failure();
  return table;
}

LogicalResult ParameterTable::readArguments(func::FuncOp step) {
  auto module = step->getParentOfType<ModuleOp>();
  for (auto parameter : module.getOps<tfm::ParameterOp>()) {
    positions[parameter.getSymNameAttr()] = list.size();
    list.emplace_back().op = parameter;
  }
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto role = step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr);
    if (!role)
      return emitError(step.getLoc())
             << "argument " << index << " has no " << tfm::kArgAttr;
    auto symbol =
        step.getArgAttrOfType<FlatSymbolRefAttr>(index, tfm::kParameterAttr);
    if (!symbol)
      continue;
    auto found = positions.find(symbol.getAttr());
    if (found == positions.end())
      return emitError(step.getLoc())
             << "argument " << index << " belongs to " << symbol
             << ", which is no tfm.parameter of the module";
    ParameterEntry &entry = list[found->second];
    weights[argument] = symbol;
    if (role == "weight")
      entry.weight = argument;
    else if (role == "master")
      entry.master = argument;
    else if (role == "remainder")
      entry.remainder = argument;
    else if (role == "state")
      entry.states.push_back(argument);
  }
  for (const ParameterEntry &entry : list)
    if (!entry.weight)
      return ParameterEntry(entry).op.emitOpError()
             << "has no weight among the arguments of @" << step.getSymName();
  return success();
}

/// Whether the op's kernel uses a weight in the sense of the checker: it tells
/// uses apart and contributes to no gradient.
static bool isForwardUse(Operation &op) {
  const plan::KernelSpec *kernel = kernelOf(&op);
  return kernel && kernel->contribution == plan::Contribution::None &&
         llvm::any_of(kernel->operands, [](const plan::OperandSpec &operand) {
           return operand.identifiesUse;
         });
}

void ParameterTable::traceWeights(Block &block) {
  for (Operation &op : block) {
    if (isa<dist::PrefetchOp, dist::AwaitOp, dist::MaterializeOp,
            dist::AllGatherOp>(op)) {
      if (FlatSymbolRefAttr symbol = weightOf(op.getOperand(0)))
        weights[op.getResult(0)] = symbol;
      continue;
    }
    if (!isForwardUse(op))
      continue;
    for (Value operand : op.getOperands())
      if (FlatSymbolRefAttr symbol = weightOf(operand))
        ++list[positions.lookup(symbol.getAttr())].uses;
  }
}

LogicalResult ParameterTable::readUpdates(func::FuncOp step,
                                          tfm::MicrobatchesOp body) {
  for (Operation &op : step.getBody().front()) {
    const plan::KernelSpec *kernel = kernelOf(&op);
    Value master =
        kernel ? operandInRole(&op, *kernel, plan::Role::Master) : Value();
    if (!master)
      continue;
    kernelOfUpdates = op.getName().stripDialect();
    FlatSymbolRefAttr symbol = weightOf(master);
    if (!symbol)
      return op.emitOpError("updates a value that is no parameter's");
    ParameterEntry &entry = list[positions.lookup(symbol.getAttr())];
    entry.decay = op.hasAttr("decay");
    traceGradient(entry, operandInRole(&op, *kernel, plan::Role::Gradient),
                  body);
    if (!entry.gradient)
      return op.emitOpError(
          "reads a gradient that is no sum over microbatches");
  }
  return success();
}

void ParameterTable::traceGradient(ParameterEntry &entry, Value gradient,
                                   tfm::MicrobatchesOp body) {
  auto symbol = FlatSymbolRefAttr::get(entry.op.getSymNameAttr());
  SmallVector<Value> pending = {gradient};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!gradients.try_emplace(value, symbol).second)
      continue;
    Operation *def = value.getDefiningOp();
    if (!def)
      continue;
    if (def == body) {
      entry.gradient = value;
      Operation *yield = body.getBody().front().getTerminator();
      pending.push_back(
          yield->getOperand(cast<OpResult>(value).getResultNumber()));
      continue;
    }
    const plan::KernelSpec *kernel = kernelOf(def);
    bool merges = kernel && kernel->contribution == plan::Contribution::Merges;
    if (merges || isa<dist::GtpDialect>(def->getDialect()))
      llvm::append_range(pending, def->getOperands());
  }
}
