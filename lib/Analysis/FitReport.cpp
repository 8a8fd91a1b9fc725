//===- FitReport.cpp - What the memory of a rank is for -------------------===//

#include "gtp/Analysis/FitReport.h"

#include "gtp/Analysis/PlanOrder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>
#include <numeric>

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

StringRef gtp::name(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::ComputeWeights:
    return "compute weights";
  case MemoryKind::MasterWeights:
    return "master weights";
  case MemoryKind::OptimizerState:
    return "optimizer state";
  case MemoryKind::Gradients:
    return "gradients";
  case MemoryKind::KeptActivations:
    return "activations kept for the backward";
  case MemoryKind::GatheredWeights:
    return "gathered weights";
  case MemoryKind::Logits:
    return "logits and their gradient";
  case MemoryKind::Working:
    return "working values";
  case MemoryKind::Scratch:
    return "kernel scratch";
  case MemoryKind::InputsAndOutputs:
    return "inputs and outputs";
  }
  llvm_unreachable("a kind without a name");
}

std::string gtp::formatBytes(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  static constexpr const char *kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    stream << bytes << " B";
    return text;
  }
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  stream << llvm::format("%.2f ", value) << kUnits[unit];
  return text;
}

//===----------------------------------------------------------------------===//
// Kinds of buffers
//===----------------------------------------------------------------------===//

namespace {

/// What the operations of a program say of each buffer.
class Classifier {
public:
  explicit Classifier(ProgramOp program);
  MemoryKind kindOf(BufferOp buffer) const;
  /// Bytes an element of a buffer; 0 when nothing touches it.
  int64_t elementOf(BufferOp buffer) const {
    return elements.lookup(buffer.getResult());
  }
  /// The operation that touches it first.
  Operation *firstUser(BufferOp buffer) const {
    auto found = spans.find(buffer.getResult());
    return found == spans.end() ? nullptr : found->second.firstStep;
  }
  int64_t firstUse(BufferOp buffer) const {
    auto found = spans.find(buffer.getResult());
    return found == spans.end() ? -1 : found->second.first;
  }

private:
  struct Span {
    int64_t first, last; ///< operations of the program
    Operation *firstStep;
  };
  /// The kinds that operations give directly; a smaller one wins.
  enum Evidence { Gathered, Gradient, Logit, ScratchOnly, Value };

  void touch(mlir::Value buffer, ViewAttr view, Evidence evidence,
             StepOpInterface step, int64_t index);
  static Evidence evidenceOf(KernelOp kernel, unsigned operand);

  DenseMap<mlir::Value, MemoryKind> persistent;
  DenseMap<mlir::Value, Evidence> evidences;
  DenseMap<mlir::Value, Span> spans;
  DenseMap<mlir::Value, int64_t> elements;
  /// The first operation that makes a contribution to a gradient.
  int64_t backward = INT64_MAX;
};

} // namespace

Classifier::Evidence Classifier::evidenceOf(KernelOp kernel, unsigned operand) {
  const plan::KernelSpec *spec = plan::lookupKernel(kernel.getName().str());
  const plan::OperandSpec *known =
      spec ? plan::operandSpec(*spec, operand, kernel.getBuffers().size())
           : nullptr;
  if (!known)
    return Value;
  // What unites contributions reads and writes nothing else.
  bool merges = spec->contribution == plan::Contribution::Merges &&
                kernel.getParameterAttr();
  if (known->role == plan::Role::Gradient || merges)
    return Gradient;
  if (known->role == plan::Role::Scratch)
    return ScratchOnly;
  return known->name == "logits" || known->name == "dlogits" ? Logit : Value;
}

void Classifier::touch(mlir::Value buffer, ViewAttr view, Evidence evidence,
                       StepOpInterface step, int64_t index) {
  auto [span, isNew] = spans.try_emplace(buffer, Span{index, index, step});
  if (!isNew)
    span->second.last = index;
  elements.try_emplace(buffer, view.getElementBytes());
  auto [known, isFirst] = evidences.try_emplace(buffer, evidence);
  if (!isFirst)
    known->second = std::min(known->second, evidence);
}

Classifier::Classifier(ProgramOp program) {
  for (auto parameter : program.getOps<ParameterOp>()) {
    // Without a master of its own, or half of one, the compute buffer is the
    // master.
    bool apart = parameter.getMaster() || parameter.getRemainder();
    persistent[parameter.getCompute()] =
        apart ? MemoryKind::ComputeWeights : MemoryKind::MasterWeights;
    for (mlir::Value master : {parameter.getMaster(), parameter.getRemainder()})
      if (master)
        persistent[master] = MemoryKind::MasterWeights;
    for (mlir::Value state : parameter.getStates())
      persistent[state] = MemoryKind::OptimizerState;
    if (parameter.getGradient())
      evidences[parameter.getGradient()] = Gradient;
  }
  int64_t index = 0;
  program.walk([&](StepOpInterface step) {
    auto kernel = dyn_cast<KernelOp>(*step);
    auto collective = dyn_cast<CollectiveOp>(*step);
    if (kernel && backward == INT64_MAX) {
      const plan::KernelSpec *spec = plan::lookupKernel(kernel.getName().str());
      if (spec && spec->contribution == plan::Contribution::Produces)
        backward = index;
    }
    for (auto [i, pair] :
         llvm::enumerate(llvm::zip(step.getBuffers(), step.getViews()))) {
      auto [buffer, view] = pair;
      Evidence evidence = Value;
      if (kernel)
        evidence = evidenceOf(kernel, i);
      else if (collective && i == 2 * collective.getMembers())
        evidence = ScratchOnly;
      else if (collective && collective.getParameterAttr())
        evidence = collective.getKind() != CollectiveKind::AllGather ? Gradient
                   : i >= collective.getMembers()                    ? Gathered
                                                                     : Value;
      touch(buffer, cast<ViewAttr>(view), evidence, step, index);
    }
    ++index;
  });
}

MemoryKind Classifier::kindOf(BufferOp buffer) const {
  mlir::Value value = buffer.getResult();
  if (buffer.getKind() == BufferKind::Input ||
      buffer.getKind() == BufferKind::Output)
    return MemoryKind::InputsAndOutputs;
  if (auto found = persistent.find(value); found != persistent.end())
    return found->second;
  auto evidence = evidences.find(value);
  switch (evidence == evidences.end() ? Value : evidence->second) {
  case Gathered:
    return MemoryKind::GatheredWeights;
  case Gradient:
    return MemoryKind::Gradients;
  case Logit:
    return MemoryKind::Logits;
  case ScratchOnly:
    return MemoryKind::Scratch;
  case Value:
    break;
  }
  auto span = spans.find(value);
  bool kept = span != spans.end() && span->second.first < backward &&
              span->second.last >= backward;
  return kept ? MemoryKind::KeptActivations : MemoryKind::Working;
}

//===----------------------------------------------------------------------===//
// The account
//===----------------------------------------------------------------------===//

/// A name with each number replaced by '*': what repeats in every layer is one
/// item.
static std::string patternOf(StringRef name) {
  std::string pattern;
  for (size_t i = 0; i < name.size();) {
    bool isNumber = llvm::isDigit(name[i]) && (i == 0 || name[i - 1] == '.');
    size_t end = i;
    while (isNumber && end < name.size() && llvm::isDigit(name[end]))
      ++end;
    isNumber = isNumber && (end == name.size() || name[end] == '.');
    pattern += isNumber ? '*' : name[i];
    i = isNumber ? end : i + 1;
  }
  return pattern;
}

static int64_t alignedSize(BufferOp buffer) {
  return int64_t(planning::alignBytes(uint64_t(buffer.getSize())));
}

/// Bytes of a parameter's shards that hold no element of it, by the share of
/// the logical tensor that a rank has.
static int64_t paddingOf(ProgramOp program, const Classifier &classes) {
  double padding = 0;
  for (auto parameter : program.getOps<ParameterOp>()) {
    double share = 1;
    for (DimAttr dim : parameter.getLayout().getDims()) {
      share *= double(dim.getLogical());
      for (ArrayRef<int64_t> axes : {dim.getCompute(), dim.getStorage()})
        for (int64_t axis : axes)
          share /= double(program.getMesh().getDegrees()[axis]);
    }
    auto add = [&](mlir::Value value) {
      auto buffer = value.getDefiningOp<BufferOp>();
      padding += std::max(0.0, double(buffer.getSize()) -
                                   share * double(classes.elementOf(buffer)));
    };
    add(parameter.getCompute());
    if (parameter.getMaster())
      add(parameter.getMaster());
    llvm::for_each(parameter.getStates(), add);
  }
  return int64_t(padding);
}

/// Buffers that are live together and weigh the most.
static SmallVector<BufferOp> peakOf(ProgramOp program) {
  PlanLifetimes lifetimes = lifetimesOf(program);
  std::vector<uint32_t> set;
  lifetimes.problem.maxLiveBytes(&set);
  return llvm::map_to_vector(
      set, [&](uint32_t index) { return lifetimes.buffers[index]; });
}

FitReport gtp::fitReport(ProgramOp program, int64_t overheadBytes,
                         ArrayRef<BufferOp> peak) {
  FitReport report;
  report.overheadBytes = overheadBytes;
  SmallVector<BufferOp> found;
  if (peak.empty()) {
    found = peakOf(program);
    peak = found;
  }
  Classifier classes(program);
  report.paddingBytes = paddingOf(program, classes);
  std::map<std::pair<std::string, MemoryKind>, FitReport::Item> items;
  int64_t live = 0, latest = -1;
  for (BufferOp buffer : peak) {
    MemoryKind kind = classes.kindOf(buffer);
    int64_t bytes = alignedSize(buffer);
    report.bytes[size_t(kind)] += bytes;
    live += bytes;
    std::string pattern = patternOf(buffer.getName());
    FitReport::Item &item = items[{pattern, kind}];
    item.name = pattern;
    item.kind = kind;
    item.bytes += bytes;
    ++item.buffers;
    if (buffer.getKind() == BufferKind::Transient &&
        classes.firstUse(buffer) > latest) {
      latest = classes.firstUse(buffer);
      report.peak = sourceName(classes.firstUser(buffer)->getLoc()).str();
    }
  }
  report.packingBytes = int64_t(program.getArena()) - live;
  for (auto &[key, item] : items)
    report.items.push_back(std::move(item));
  llvm::sort(report.items,
             [](const FitReport::Item &a, const FitReport::Item &b) {
               return std::tie(b.bytes, a.name, a.kind) <
                      std::tie(a.bytes, b.name, b.kind);
             });
  return report;
}

int64_t FitReport::arenaBytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), packingBytes);
}

MemoryKind FitReport::largestKind() const {
  return MemoryKind(llvm::max_element(bytes) - bytes.begin());
}

const FitReport::Item *FitReport::largest(MemoryKind kind) const {
  auto found =
      llvm::find_if(items, [&](const Item &item) { return item.kind == kind; });
  return found == items.end() ? nullptr : &*found;
}

static std::string describe(const FitReport::Item &item) {
  std::string text = item.name.empty() ? "unnamed" : item.name;
  if (item.buffers > 1)
    text += " x " + std::to_string(item.buffers);
  return text;
}

std::string FitReport::largestPart() const {
  MemoryKind kind = largestKind();
  std::string text =
      gtp::name(kind).str() + ", " + formatBytes(bytes[size_t(kind)]);
  if (const Item *item = largest(kind))
    text += ", and of it " + describe(*item) + ", " + formatBytes(item->bytes);
  return text;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void FitReport::print(llvm::raw_ostream &stream, int64_t limit,
                      StringRef limitName) const {
  constexpr int kShown = 8;
  int64_t total = totalBytes();
  auto row = [&](int64_t value, const Twine &label) {
    stream << llvm::right_justify(formatBytes(value), 14)
           << llvm::format("%7.1f%%  ",
                           total ? 100.0 * double(value) / double(total) : 0.0)
           << label << "\n";
  };
  stream << "memory of a rank at its peak";
  if (!peak.empty())
    stream << " (" << peak << ")";
  stream << "\n";
  for (auto [i, value] : llvm::enumerate(bytes))
    if (value)
      row(value, gtp::name(MemoryKind(i)));
  row(packingBytes, "packing: arena above what is live");
  row(overheadBytes, "the target's own: context, communicators, graphs");
  std::string verdict = "total";
  if (limit)
    verdict += (" " + limitName + " " + formatBytes(limit) + ": " +
                (total <= limit ? formatBytes(limit - total) + " left"
                                : formatBytes(total - limit) + " too much"))
                   .str();
  row(total, verdict);
  if (paddingBytes)
    row(paddingBytes, "of the total are padding of shards");
  stream << "largest items\n";
  for (const Item &item :
       ArrayRef(items).take_front(std::min<size_t>(kShown, items.size())))
    row(item.bytes, describe(item) + ": " + gtp::name(item.kind));
}
