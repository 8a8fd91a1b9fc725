//===- FitAdvice.cpp - Changes of a compilation that make it fit ----------===//

#include "FitAdvice.h"

#include "gtp/Analysis/FitReport.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace gtp;
using llvm::StringRef;

namespace {

class Search {
public:
  Search(const CompileOptions &options, int64_t sequence, int64_t needed,
         MeasureFn measure)
      : given(options), sequence(sequence), needed(needed), measure(measure) {
    // A smaller microbatch or another mesh is to make the same steps.
    fixedBatch = given;
    fixedBatch.globalBatch =
        given.mesh.dataRanks() * given.microBatch * given.microbatches();
  }

  FitAdvice run();

private:
  struct Candidate {
    CompileOptions options;
    std::string text;
  };

  bool fitsBudget(int64_t bytes) const { return bytes <= given.memoryBudget; }
  /// Tries one; true when it fits.
  bool attempt(const Candidate &candidate);
  /// Candidates from mild to harsh, each needing less than the one before:
  /// names the mildest that fits. True when there is one.
  bool mildest(llvm::ArrayRef<Candidate> candidates);

  std::vector<Candidate> smallerMicroBatches() const;
  std::vector<Candidate> dataToStorage() const;
  std::vector<Candidate> shorterSequences() const;
  void otherNumbers();
  void combined();
  bool higherDegree(CompileOptions base, int64_t bytes, StringRef also);

  CompileOptions given, fixedBatch;
  int64_t sequence, needed;
  MeasureFn measure;
  FitAdvice advice;
};

} // namespace

/// The axis along which weights at rest are cut, or the one along which they
/// are repeated while data is cut; null when the mesh lacks it.
static MeshAxis *dataAxis(CompileOptions &options, bool cutsWeights) {
  for (MeshAxis &axis : options.mesh.axes)
    for (const AxisKind &kind : axisKinds())
      if (kind.name == axis.name && kind.cutsData &&
          kind.cutsWeights == cutsWeights)
        return &axis;
  return nullptr;
}

static bool isLegal(const CompileOptions &options) {
  llvm::Error error = options.validate();
  bool legal = !error;
  llvm::consumeError(std::move(error));
  return legal;
}

bool Search::attempt(const Candidate &candidate) {
  std::optional<int64_t> bytes = measure(candidate.options);
  if (!bytes)
    return false;
  bool fits = fitsBudget(*bytes);
  (fits ? advice.fits : advice.tooLarge)
      .push_back(candidate.text + ": " + formatBytes(*bytes));
  return fits;
}

bool Search::mildest(llvm::ArrayRef<Candidate> candidates) {
  if (candidates.empty())
    return false;
  // When the harshest is not enough, none is.
  std::optional<int64_t> least = measure(candidates.back().options);
  if (!least)
    return false;
  if (!fitsBudget(*least)) {
    advice.tooLarge.push_back(candidates.back().text + ": " +
                              formatBytes(*least));
    return false;
  }
  for (const Candidate &candidate : candidates.drop_back())
    if (std::optional<int64_t> bytes = measure(candidate.options);
        bytes && fitsBudget(*bytes)) {
      advice.fits.push_back(candidate.text + ": " + formatBytes(*bytes));
      return true;
    }
  advice.fits.push_back(candidates.back().text + ": " + formatBytes(*least));
  return true;
}

std::vector<Search::Candidate> Search::smallerMicroBatches() const {
  std::vector<Candidate> result;
  for (int64_t size = given.microBatch / 2; size >= 1; size /= 2) {
    CompileOptions options = fixedBatch;
    options.microBatch = size;
    if (isLegal(options))
      result.push_back({options, "--micro-batch=" + std::to_string(size) +
                                     " --global-batch=" +
                                     std::to_string(options.globalBatch)});
  }
  return result;
}

std::vector<Search::Candidate> Search::dataToStorage() const {
  std::vector<Candidate> result;
  CompileOptions options = fixedBatch;
  MeshAxis *repeats = dataAxis(options, /*cutsWeights=*/false);
  MeshAxis *cuts = dataAxis(options, /*cutsWeights=*/true);
  if (!repeats || !cuts)
    return result;
  const int64_t copies = repeats->degree, ranks = copies * cuts->degree;
  for (int64_t kept = copies / 2; kept >= 1; --kept) {
    if (copies % kept != 0)
      continue;
    repeats->degree = kept;
    cuts->degree = ranks / kept;
    if (isLegal(options))
      result.push_back({options, "--mesh=" + options.mesh.str()});
  }
  return result;
}

std::vector<Search::Candidate> Search::shorterSequences() const {
  std::vector<Candidate> result;
  constexpr int64_t kHalvings = 5;
  for (int64_t length = sequence / 2, i = 0; length >= 1 && i < kHalvings;
       length /= 2, ++i) {
    CompileOptions options = given;
    options.sequence = length;
    result.push_back({options, "--seq=" + std::to_string(length)});
  }
  return result;
}

/// Types and optimizers that hold less.
void Search::otherNumbers() {
  if (given.gradDtype == Element::F32) {
    CompileOptions options = given;
    options.gradDtype = options.reduceDtype = Element::BF16;
    attempt({options, "--grad-dtype=bf16"});
  }
  for (const char *states : {"split", "bf16"}) {
    CompileOptions options = given;
    options.stateDtype = states;
    if (given.stateDtype == "f32" && isLegal(options))
      attempt({options, std::string("--state-dtype=") + states});
  }
  if (given.optimizer == CompileOptions::Optimizer::AdamW) {
    CompileOptions options = given;
    options.optimizer = CompileOptions::Optimizer::Sgd;
    attempt({options, "--optimizer=sgd"});
  }
}

/// In multiples of the degree given, which are whole machines more often than
/// not. What the degree cuts falls as 1/degree; the fit to what was measured
/// gives the next guess, and what is said are the two degrees in the end
/// between which the budget lies.
bool Search::higherDegree(CompileOptions base, int64_t bytes, StringRef also) {
  MeshAxis *axis = dataAxis(base, /*cutsWeights=*/true);
  if (!axis)
    return false;
  constexpr int64_t kMostDegree = 65536;
  constexpr int kMostTrials = 10;
  auto withDegree = [&](int64_t value) {
    axis->degree = value;
    return base;
  };
  /// The first degree from `from` on, in steps of `step`, that the batch
  /// allows; 0 when there is none before `end`.
  auto legalFrom = [&](int64_t from, int64_t step, int64_t end) -> int64_t {
    for (int64_t value = from; step > 0 ? value < end : value > end;
         value += step)
      if (isLegal(withDegree(value)))
        return value;
    return 0;
  };
  const int64_t first = axis->degree;
  auto wholeSteps = [&](double degree) {
    return int64_t(std::ceil(degree / double(first))) * first;
  };
  struct Point {
    int64_t degree, bytes;
  };
  Point low{first, bytes}, high{0, 0};
  Point older = low;
  int64_t guess = legalFrom(2 * first, first, kMostDegree);
  for (int trial = 0; guess && trial < kMostTrials; ++trial) {
    std::optional<int64_t> found = measure(withDegree(guess));
    if (!found)
      break;
    Point point{guess, *found};
    bool fits = fitsBudget(*found);
    if (fits) {
      older = low;
      high = point;
    } else {
      older = high.degree ? high : low;
      low = point;
    }
    int64_t above = high.degree ? high.degree : kMostDegree;
    int64_t next = legalFrom(low.degree + first, first, above);
    if (!next)
      break; // nothing between the two
    // bytes = fixed + cut / degree through the last two points.
    double slope = 1.0 / double(older.degree) - 1.0 / double(point.degree);
    double cut = slope ? double(older.bytes - point.bytes) / slope : 0;
    double fixed = double(point.bytes) - cut / double(point.degree);
    double room = double(given.memoryBudget) - fixed;
    double ideal = room > 0 && cut > 0 ? std::ceil(cut / room) : 0;
    if (high.degree) {
      // One step below what fits, else the ideal, kept inside of the two.
      double inside = std::min(ideal, double(high.degree - first));
      guess = std::max(next, wholeSteps(inside));
      int64_t legal = legalFrom(guess, -first, low.degree);
      guess = legal ? legal : next;
    } else if (ideal > double(low.degree) && ideal < double(kMostDegree)) {
      guess = legalFrom(wholeSteps(ideal), first, kMostDegree);
    } else {
      break; // what the degree does not cut is too large already
    }
  }
  auto mesh = [&](int64_t value) {
    return ("--mesh=" + withDegree(value).mesh.str() + also).str();
  };
  if (high.degree) {
    std::string batch;
    if (!base.globalBatch)
      batch = ", a global batch of " +
              std::to_string(withDegree(high.degree).mesh.dataRanks() *
                             base.microBatch * base.microbatches());
    advice.fits.push_back(
        mesh(high.degree) + ": " + formatBytes(high.bytes) + ", on " +
        std::to_string(withDegree(high.degree).mesh.ranks()) + " ranks" +
        batch + "; " + axis->name + "=" + std::to_string(low.degree) +
        " needs " + formatBytes(low.bytes));
    return true;
  }
  if (low.degree != first)
    advice.tooLarge.push_back(mesh(low.degree) + ": " + formatBytes(low.bytes));
  return false;
}

/// Nothing alone is enough: the degree with less of everything else, the
/// mildest that fits.
void Search::combined() {
  CompileOptions base = given;
  std::string also;
  if (given.microBatch > 1) {
    base = fixedBatch;
    base.microBatch = 1;
    also =
        " --micro-batch=1 --global-batch=" + std::to_string(base.globalBatch);
  }
  std::vector<Candidate> candidates = shorterSequences();
  candidates.insert(candidates.begin(), {given, ""});
  for (const Candidate &candidate : candidates) {
    CompileOptions options = base;
    options.sequence = candidate.options.sequence;
    if (!isLegal(options))
      return;
    std::string text = also;
    if (!candidate.text.empty())
      text += " " + candidate.text;
    std::optional<int64_t> bytes = measure(options);
    if (!text.empty() && bytes && higherDegree(options, *bytes, text))
      return;
  }
}

FitAdvice Search::run() {
  mildest(smallerMicroBatches());
  mildest(dataToStorage());
  otherNumbers();
  mildest(shorterSequences());
  higherDegree(given, needed, "");
  if (advice.fits.empty())
    combined();
  return std::move(advice);
}

FitAdvice gtp::adviseFit(const CompileOptions &options, int64_t sequence,
                         int64_t needed, MeasureFn measure) {
  return Search(options, sequence, needed, measure).run();
}
