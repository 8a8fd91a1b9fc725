//===- CompileOptions.cpp - What a compilation is asked to do -------------===//

#include "gtp/Tools/CompileOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace gtp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

Error gtp::usageError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Expected<int64_t> gtp::parseCount(StringRef option, StringRef text, int64_t low,
                                  int64_t high) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < low || value > high)
    return usageError("--" + option + "=" + text + ": expected an integer " +
                      (high == INT64_MAX
                           ? "of at least " + Twine(low)
                           : "from " + Twine(low) + " to " + Twine(high)));
  return value;
}

Expected<int64_t> gtp::parseSize(StringRef option, StringRef text) {
  if (text == "unlimited")
    return 0;
  StringRef number = text;
  double unit = 1;
  if (number.consume_back("KiB"))
    unit = 1024.0;
  else if (number.consume_back("MiB"))
    unit = 1024.0 * 1024.0;
  else if (number.consume_back("GiB"))
    unit = 1024.0 * 1024.0 * 1024.0;
  double value = 0;
  // Below 2^53 every count of bytes is exact.
  constexpr double kLargest = 9007199254740992.0;
  bool plain = !number.empty() && llvm::isDigit(number.front()) &&
               number.find_first_not_of("0123456789.") == StringRef::npos;
  if (!plain || number.getAsDouble(value) || value * unit < 1.0 ||
      value * unit > kLargest ||
      (unit == 1 && number.find('.') != StringRef::npos))
    return usageError("--" + option + "=" + text +
                      ": expected bytes, a size like 80GiB (KiB, MiB or GiB), "
                      "or unlimited");
  return static_cast<int64_t>(value * unit);
}

StringRef gtp::name(Element element) {
  return element == Element::F32 ? "f32" : "bf16";
}

Expected<Element> gtp::parseElement(StringRef option, StringRef text) {
  if (text == "f32")
    return Element::F32;
  if (text == "bf16")
    return Element::BF16;
  return usageError("--" + option + "=" + text + ": expected f32 or bf16");
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

Expected<Mesh> gtp::parseMeshOption(StringRef option, StringRef text) {
  Expected<Mesh> mesh = Mesh::parse(text);
  if (!mesh)
    return usageError("--" + option + "=" + text + ": " +
                      llvm::toString(mesh.takeError()));
  for (const AxisKind &kind : axisKinds()) {
    MeshAxis *axis = llvm::find_if(mesh->axes, [&](const MeshAxis &candidate) {
      return candidate.name == kind.name;
    });
    bool isThere = axis != mesh->axes.end();
    if (isThere && !kind.supported)
      mesh->axes.erase(axis);
    // Passes may rely on it; one of degree 1 changes no rank's number.
    if (!isThere && kind.supported)
      mesh->axes.insert(kind.cutsWeights ? mesh->axes.end()
                                         : mesh->axes.begin(),
                        MeshAxis{kind.name.str(), 1});
  }
  return mesh;
}

//===----------------------------------------------------------------------===//
// Rules between options
//===----------------------------------------------------------------------===//

int64_t CompileOptions::microbatches() const {
  return globalBatch ? globalBatch / (mesh.dataRanks() * microBatch) : 1;
}

/// The step's batch must be whole microbatches on every data rank.
static Error checkBatch(const CompileOptions &options) {
  // Far above any batch, and the product below stays in 64 bits.
  constexpr int64_t kMaxBatch = int64_t(1) << 32;
  if (options.microBatch > kMaxBatch || options.globalBatch > kMaxBatch)
    return usageError("a batch of more than " + Twine(kMaxBatch) +
                      " sequences is not supported");
  int64_t dataRanks = options.mesh.dataRanks();
  int64_t unit = dataRanks * options.microBatch;
  if (!options.globalBatch || options.globalBatch % unit == 0)
    return Error::success();
  int64_t below = options.globalBatch / unit * unit;
  std::string nearest = std::to_string(below + unit);
  if (below)
    nearest = std::to_string(below) + ", " + nearest;
  return usageError("--global-batch=" + Twine(options.globalBatch) +
                    " is not a multiple of data ranks " + Twine(dataRanks) +
                    " \xC3\x97 micro-batch " + Twine(options.microBatch) +
                    "; nearest that work: " + nearest);
}

/// Masters may not hold less than the weights that compute.
static Error checkStates(const CompileOptions &options) {
  if (options.dtype != Element::F32 || options.stateDtype == "f32")
    return Error::success();
  return usageError(
      "--state-dtype=" + options.stateDtype + " with --dtype=f32: " +
      (options.stateDtype == "split"
           ? "split keeps a float32 master as its bf16 compute weight and the "
             "16 bits that are left, and a float32 compute weight is its "
             "master already"
           : "bf16 masters would hold less than the float32 weights that "
             "compute") +
      "; give --dtype=bf16, or --state-dtype=f32");
}

Error CompileOptions::validate() const {
  if (Error error = checkBatch(*this))
    return error;
  if (Error error = checkStates(*this))
    return error;
  if (!std::isfinite(clipNorm) || clipNorm < 0)
    return usageError("--clip-norm: expected a number above 0, or 0 for off");
  if (sync && prefetchDistance)
    return usageError("--sync and --prefetch-distance contradict each other; "
                      "give one");
  if (!prefetch && prefetchDistance)
    return usageError("--no-prefetch and --prefetch-distance contradict each "
                      "other; give one");
  if (!stopAfter.empty() && emit != Emit::Mlir)
    return usageError(
        "--stop-after prints MLIR; it does not go with another --emit");
  return Error::success();
}

ImportOptions CompileOptions::importOptions() const {
  ImportOptions result;
  result.sequence = sequence;
  result.microBatch = microBatch;
  result.dataRanks = mesh.dataRanks();
  result.microbatches = microbatches();
  result.element = dtype;
  result.documentSeparator = documentSeparator;
  result.sequenceMean = sequenceMean;
  result.dropoutAcknowledged = dropoutAcknowledged;
  return result;
}

llvm::SmallVector<std::string> CompileOptions::canonical() const {
  llvm::SmallVector<std::string> result;
  auto add = [&](StringRef option, const Twine &value) {
    result.push_back(("--" + option + "=" + value).str());
  };
  add("mesh", mesh.str());
  if (sequence)
    add("seq", Twine(sequence));
  add("micro-batch", Twine(microBatch));
  add("global-batch", Twine(mesh.dataRanks() * microBatch * microbatches()));
  add("dtype", name(dtype));
  add("grad-dtype", name(gradDtype));
  add("reduce-dtype", name(reduceDtype));
  add("state-dtype", stateDtype);
  add("attention-backward", fastAttention ? "fast" : "deterministic");
  add("optimizer", optimizer == Optimizer::AdamW ? "adamw" : "sgd");
  std::string clip;
  llvm::raw_string_ostream(clip) << llvm::format("%.17g", clipNorm);
  add("clip-norm", clip);
  add("loss", sequenceMean ? "sequence-mean" : "token-mean");
  if (documentSeparator)
    add("document-separator", Twine(*documentSeparator));
  add("memory-budget",
      memoryBudget ? std::to_string(memoryBudget) : std::string("unlimited"));
  add("target", target);
  for (const auto &[option, value] :
       {std::pair("freeze", overrides.freeze),
        std::pair("replicate", overrides.replicate),
        std::pair("overrides", overrides.file)})
    if (!value.empty())
      add(option, value);
  if (!fuse)
    result.push_back("--no-fuse");
  if (!prefetch)
    result.push_back("--no-prefetch");
  if (sync)
    result.push_back("--sync");
  if (prefetchDistance)
    add("prefetch-distance", Twine(*prefetchDistance));
  return result;
}
