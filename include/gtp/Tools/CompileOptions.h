//===- CompileOptions.h - What a compilation is asked to do ---------------===//
//
// One struct holds every option of the command line that is about compiling;
// passes get theirs from it, in Pipeline.cpp and nowhere else. Parsing of
// values and the rules between options are here; the flags themselves are in
// CompileFlags.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TOOLS_COMPILEOPTIONS_H
#define GTP_TOOLS_COMPILEOPTIONS_H

#include "gtp/Import/Import.h"
#include "gtp/Import/Overrides.h"
#include "gtp/Transforms/Mesh.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gtp {

/// All that a command line says of what to compile and for what.
struct CompileOptions {
  enum class Emit { Mlir, Plan, PlanText, Cpp, Trace, Gantt };
  enum class Optimizer { AdamW, Sgd };
  enum class FitReport { Auto, Always, Never };

  Mesh mesh;
  int64_t sequence = 0; ///< 0: min(2048, the model's positions)
  int64_t microBatch = 1;
  int64_t globalBatch = 0; ///< 0: data ranks x micro-batch
  Element dtype = Element::BF16;
  Element gradDtype = Element::F32;
  Element reduceDtype = Element::F32;
  std::string stateDtype = "f32"; ///< or "bf16", "split"
  bool fastAttention = false;     ///< its gradient, in any order of sums
  Optimizer optimizer = Optimizer::AdamW;
  double clipNorm = 0; ///< 0: off
  bool sequenceMean = false;
  bool dropoutAcknowledged = false;
  std::optional<int64_t> documentSeparator; ///< none: a sequence is a document
  int64_t memoryBudget = 0;                 ///< bytes; 0: unlimited
  std::string target = "cpu";
  bool fuse = true;
  bool prefetch = true;
  bool sync = false;
  std::optional<int64_t> prefetchDistance;
  OverrideOptions overrides; ///< of single parameters

  Emit emit = Emit::Mlir;
  std::string stopAfter;
  std::string statsFile;
  /// Auto: when standard error is a terminal.
  FitReport fitReport = FitReport::Auto;

  /// Microbatches a step, by the batch options.
  int64_t microbatches() const;

  /// The rules between options.
  llvm::Error validate() const;

  ImportOptions importOptions() const;

  /// Every option that changes the plan, with its value: "--mesh=dp=1,gtp=4".
  llvm::SmallVector<std::string> canonical() const;
};

/// Reads the mesh of an option. Axes that cannot cut anything yet stay out, and
/// all others are there.
llvm::Expected<Mesh> parseMeshOption(llvm::StringRef option,
                                     llvm::StringRef text);

/// "f32" or "bf16".
llvm::StringRef name(Element element);
/// The reverse.
llvm::Expected<Element> parseElement(llvm::StringRef option,
                                     llvm::StringRef text);

/// Bytes: an integer, or a number with KiB, MiB or GiB; "unlimited" is 0.
llvm::Expected<int64_t> parseSize(llvm::StringRef option, llvm::StringRef text);

/// A decimal integer of `low` to `high`.
llvm::Expected<int64_t> parseCount(llvm::StringRef option, llvm::StringRef text,
                                   int64_t low, int64_t high = INT64_MAX);

/// An error for the user, without the "error:" that the tool prints.
llvm::Error usageError(const llvm::Twine &message);

} // namespace gtp

#endif // GTP_TOOLS_COMPILEOPTIONS_H
