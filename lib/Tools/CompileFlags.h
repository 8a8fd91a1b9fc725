//===- CompileFlags.h - The command line of a compilation -----------------===//

#ifndef GTP_LIB_TOOLS_COMPILEFLAGS_H
#define GTP_LIB_TOOLS_COMPILEFLAGS_H

#include "gtp/Tools/CompileOptions.h"

#include "llvm/Support/CommandLine.h"

namespace gtp {

/// The flags of gtp-opt beside those of an MLIR opt tool. An object registers
/// them; one at a time.
class CompileFlags {
public:
  CompileFlags();

  /// What the parsed command line says, once the rules hold.
  llvm::Expected<CompileOptions> read() const;

  /// The first flag that was given and that only a compilation has a use for,
  /// or null. `-o` is not among them.
  const llvm::cl::Option *firstGiven() const;
  bool givesMicroBatch() const { return microBatch.getNumOccurrences(); }
  bool givesDtype() const { return dtype.getNumOccurrences(); }

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> input;
  llvm::cl::opt<std::string> output;

private:
  /// All of them but the input and `-o`.
  llvm::SmallVector<const llvm::cl::Option *> ofCompilations() const;
  llvm::Error refuseUnclear() const;
  llvm::Error refuseUnsupported() const;
  llvm::Error readBatch(CompileOptions &options) const;
  llvm::Error readTypes(CompileOptions &options) const;

  using Text = llvm::cl::opt<std::string>;
  Text mesh, expertMesh;
  Text sequence, microBatch, globalBatch;
  Text dtype, gradDtype, reduceDtype, stateDtype;
  Text attentionBackward;
  Text optimizer, clipNorm, freeze, replicate;
  Text loss, dropout, documentSeparator;
  Text memoryBudget, target;
  Text emit, stopAfter, stats, fitReport;
  llvm::cl::opt<bool> noFuse, noPrefetch, sync;
  Text prefetchDistance, overrides;
};

} // namespace gtp

#endif // GTP_LIB_TOOLS_COMPILEFLAGS_H
