//===- StepSchedule.cpp - A microbatch as a scheduling problem ------------===//
//
// What lives beside gathered weights and outstanding gradients is the base
// profile: it does not depend on the schedule. It is an estimate from values,
// and offsets decide in the end; gtp-plan-step closes the loop.
//
//===----------------------------------------------------------------------===//

#include "gtp/Analysis/StepSchedule.h"

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Planning/Memory.h"
#include "llvm/ADT/MapVector.h"

using namespace gtp;
using namespace mlir;

static int64_t alignedBytes(int64_t bytes) {
  return int64_t(planning::alignBytes(uint64_t(bytes)));
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return alignedBytes(type.getNumElements() *
                      planir::elementBytes(type.getElementType()));
}

static std::string nameOf(Operation *op) {
  StringRef name = planir::sourceName(op->getLoc());
  std::string text =
      name.empty() ? op->getName().getStringRef().str() : name.str();
  llvm::replace(text, ' ', '_');
  return text;
}

namespace {

class ProblemBuilder {
public:
  ProblemBuilder(func::FuncOp step, tfm::MicrobatchesOp body,
                 const CostModel &costs)
      : step(step), body(body), block(body.getBody().front()), costs(costs) {}

  FailureOr<StepSchedule> build();

private:
  void numberOps();
  LogicalResult addCollectives();
  LogicalResult addOutside();
  /// What is decided by hand for a parameter holds for its gathers.
  void pinGathers();
  void addBase();
  /// The value whose buffer holds `value`: pieces of splits and concats share,
  /// and what is written over another has its.
  Value rootOf(Value value) const;
  FailureOr<std::pair<planning::TransferCost, machine::CollectivePrice>>
  transferCost(const CollectiveSpec &spec, Location loc) const;
  /// Compute index of the first kernel at or behind, and the last at or before,
  /// a position of the block.
  uint32_t firstFrom(int64_t position) const;
  uint32_t lastUpTo(int64_t position) const;
  std::pair<int64_t, int64_t> usePositions(Value value) const;

  func::FuncOp step;
  tfm::MicrobatchesOp body;
  Block &block;
  const CostModel &costs;
  StepSchedule result;
  /// Number of kernels before each position.
  SmallVector<uint32_t> kernelsBefore;
};

} // namespace

void ProblemBuilder::numberOps() {
  int64_t position = 0;
  for (Operation &op : block) {
    result.positions[&op] = position++;
    kernelsBefore.push_back(result.compute.size());
    if (!runsKernel(&op))
      continue;
    result.compute.push_back(&op);
    result.problem.ops.push_back(
        {costs.kernelNs(&op), nameOf(&op), costs.crowdedPermille(&op)});
  }
  kernelsBefore.push_back(result.compute.size());
  result.problem.base = planning::BaseProfile(result.compute.size());
}

uint32_t ProblemBuilder::firstFrom(int64_t position) const {
  uint32_t last = result.compute.size() - 1;
  return std::min(kernelsBefore[position], last);
}

uint32_t ProblemBuilder::lastUpTo(int64_t position) const {
  return std::max<uint32_t>(kernelsBefore[position + 1], 1) - 1;
}

std::pair<int64_t, int64_t> ProblemBuilder::usePositions(Value value) const {
  int64_t first = INT64_MAX, last = -1;
  for (Operation *user : value.getUsers()) {
    auto found = result.positions.find(user);
    if (found == result.positions.end())
      continue;
    first = std::min(first, found->second);
    last = std::max(last, found->second);
  }
  return {first, last};
}

FailureOr<std::pair<planning::TransferCost, machine::CollectivePrice>>
ProblemBuilder::transferCost(const CollectiveSpec &spec, Location loc) const {
  FailureOr<machine::CollectivePrice> price = costs.price(spec, loc);
  if (failed(price))
    return failure();
  planning::TransferCost cost;
  cost.durationNs =
      price->durationNs + (spec.isGather() ? price->ownCopyNs : 0);
  cost.contentionNs = price->contentionNs;
  cost.slowdownPermille = price->slowdownPermille;
  cost.holdsMultiprocessors = price->holdsMultiprocessors;
  return std::pair(cost, *price);
}

LogicalResult ProblemBuilder::addCollectives() {
  uint32_t numOps = result.compute.size();
  for (Operation &op : block) {
    std::optional<CollectiveSpec> spec = collectiveSpec(&op);
    if (!spec || op.use_empty())
      continue;
    auto cost = transferCost(*spec, op.getLoc());
    if (failed(cost))
      return failure();
    Value value = op.getResult(0);
    auto [first, last] = usePositions(value);
    int64_t own = result.positions.lookup(&op);
    if (isa<dist::MaterializeOp>(op)) {
      planning::Gather gather;
      gather.bytes = alignedBytes(spec->fullBytes());
      gather.cost = cost->first;
      gather.firstUse = firstFrom(first);
      gather.lastUse = std::max(gather.firstUse, lastUpTo(last));
      gather.name = nameOf(&op);
      result.problem.gathers.push_back(gather);
      result.gathers.push_back(&op);
      continue;
    }
    if (spec->isGather())
      continue; // gathered activations are not scheduled yet
    planning::Reduction reduction;
    // An all-reduce works in place, or on the shard that a scatter left.
    bool scatters = spec->kind == dist::CollectiveKind::ReduceScatter;
    reduction.bytes = scatters ? alignedBytes(spec->fullBytes()) : 0;
    reduction.cost = cost->first;
    if (scatters)
      reduction.bytes +=
          costs.scratchBytes(*spec, cost->second, result.repeat > 1);
    reduction.producer = lastUpTo(own);
    bool leaves = llvm::all_of(value.getUsers(), [](Operation *user) {
      return isa<tfm::YieldOp>(user) || collectiveSpec(user);
    });
    reduction.consumer = leaves ? numOps : firstFrom(first);
    if (reduction.consumer <= reduction.producer)
      reduction.consumer = numOps;
    reduction.name = nameOf(&op);
    result.problem.reductions.push_back(reduction);
    result.reductions.push_back(&op);
  }
  return success();
}

void ProblemBuilder::pinGathers() {
  DenseMap<StringAttr, StringAttr> prefetches;
  if (auto module = step->getParentOfType<ModuleOp>())
    for (auto parameter : module.getOps<tfm::ParameterOp>())
      if (StringAttr prefetch = parameter.getPrefetchAttr())
        prefetches[parameter.getSymNameAttr()] = prefetch;
  if (prefetches.empty())
    return;
  std::vector<uint32_t> order = result.problem.gatherOrder();
  for (auto [position, index] : llvm::enumerate(order)) {
    auto shard = dyn_cast<BlockArgument>(result.gathers[index]->getOperand(0));
    if (!shard || shard.getOwner() != &step.getBody().front())
      continue;
    auto parameter = step.getArgAttrOfType<FlatSymbolRefAttr>(
        shard.getArgNumber(), tfm::kParameterAttr);
    StringAttr prefetch =
        parameter ? prefetches.lookup(parameter.getAttr()) : StringAttr();
    if (!prefetch)
      continue;
    planning::Gather &gather = result.problem.gathers[index];
    // The verifier admits "off", "auto" and numbers.
    uint32_t distance = 0;
    if (prefetch.getValue() == "auto")
      gather.automatic = true;
    else if (prefetch.getValue() == "off" ||
             !prefetch.getValue().getAsInteger(10, distance))
      gather.pinned = result.problem.triggerAhead(order, position, distance);
  }
}

LogicalResult ProblemBuilder::addOutside() {
  step.walk([&](Operation *op) {
    if (std::optional<CollectiveSpec> spec = collectiveSpec(op))
      result.communicators.insert(spec->communicatorName());
  });
  for (Operation &op : step.getBody().front()) {
    result.outsideComputeNs += costs.kernelNs(&op);
    if (std::optional<CollectiveSpec> spec = collectiveSpec(&op)) {
      FailureOr<machine::CollectivePrice> price =
          costs.price(*spec, op.getLoc());
      if (failed(price))
        return failure();
      result.outsideStallNs += price->durationNs;
    }
  }
  return success();
}

Value ProblemBuilder::rootOf(Value value) const {
  while (true) {
    if (auto split = value.getDefiningOp<tfm::SplitOp>()) {
      value = split.getX();
      continue;
    }
    if (auto result = dyn_cast<OpResult>(value))
      if (Value before = overwrittenBy(result)) {
        value = before;
        continue;
      }
    SmallVector<OpOperand *> uses = readingUses(value);
    auto concat = uses.size() == 1
                      ? dyn_cast<tfm::ConcatOp>(uses.front()->getOwner())
                      : tfm::ConcatOp();
    if (!concat || !isJoinedInPlace(concat))
      return value;
    value = concat.getResult();
  }
}

void ProblemBuilder::addBase() {
  planning::BaseProfile &base = result.problem.base;
  int64_t always = 0;
  for (Value argument : step.getArguments())
    always += bytesOf(argument);
  for (Operation &op : step.getBody().front())
    if (&op != body)
      for (Value value : op.getResults())
        if (llvm::any_of(value.getUsers(), [&](Operation *user) {
              return block.findAncestorOpInBlock(*user);
            }))
          always += bytesOf(value);

  // A sum is held all the time when iterations add to it, else from the end of
  // what makes it.
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    int64_t bytes = bytesOf(operand.get());
    Operation *def = operand.get().getDefiningOp();
    if (result.repeat > 1 || !def || !result.positions.contains(def))
      always += bytes;
    else
      base.addUntilEnd(lastUpTo(result.positions.lookup(def)), bytes);
  }
  base.addAlways(always);

  // First and last kernel that touch each buffer.
  llvm::MapVector<Value, std::pair<uint32_t, uint32_t>> lives;
  auto touch = [&](Value value, uint32_t kernel) {
    Value root = rootOf(value);
    auto [it, isNew] = lives.insert({root, {kernel, kernel}});
    if (!isNew)
      it->second.second = std::max(it->second.second, kernel);
  };
  DenseSet<Value> counted; // in gathers, reductions or sums
  for (Operation &op : block)
    if (std::optional<CollectiveSpec> spec = collectiveSpec(&op)) {
      counted.insert(op.getResult(0));
      counted.insert(spec->source);
    }
  for (Value value : block.getTerminator()->getOperands())
    counted.insert(value);
  for (auto [index, op] : llvm::enumerate(result.compute)) {
    for (Value value : op->getResults())
      touch(value, index);
    for (Value value : op->getOperands())
      if (value.getParentBlock() == &block && !isa<BlockArgument>(value))
        touch(value, index);
    if (int64_t scratch = costs.scratchBytes(op))
      base.addCompute(index, index, alignedBytes(scratch));
  }
  for (auto &[value, life] : lives)
    if (!counted.contains(value))
      base.addCompute(life.first, life.second, bytesOf(value));
}

FailureOr<StepSchedule> ProblemBuilder::build() {
  result.repeat =
      cast<RankedTensorType>(body.getInputs().front().getType()).getDimSize(0);
  numberOps();
  if (result.compute.empty())
    return emitError(body.getLoc(), "there is no kernel to schedule");
  result.problem.sharedLinkPermille = costs.machine().sharedLinkPermille;
  if (failed(addCollectives()) || failed(addOutside()))
    return failure();
  pinGathers();
  addBase();
  return std::move(result);
}

SmallVector<func::FuncOp> gtp::stepFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (StringRef name : {tfm::kTrainStepFunction, tfm::kEvalStepFunction}) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (function && function.getBody().hasOneBlock())
      functions.push_back(function);
    else if (functions.empty())
      return {};
  }
  return functions;
}

FailureOr<StepSchedule> gtp::stepSchedule(func::FuncOp step,
                                          const CostModel &costs) {
  auto bodies = llvm::to_vector(step.getOps<tfm::MicrobatchesOp>());
  if (bodies.size() != 1 || bodies.front().getInputs().empty())
    return emitError(step.getLoc())
           << "there are " << bodies.size()
           << " tfm.microbatches, expected one with inputs";
  return ProblemBuilder(step, bodies.front(), costs).build();
}
