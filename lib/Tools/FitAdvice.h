//===- FitAdvice.h - Changes of a compilation that make it fit ------------===//
//
// When a budget cannot be met, says what would: every change that is named was
// compiled, and so was each that is said not to be enough.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_TOOLS_FITADVICE_H
#define GTP_LIB_TOOLS_FITADVICE_H

#include "gtp/Tools/CompileOptions.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace gtp {

/// Bytes that a rank needs with some options and their budget; none when they
/// do not compile.
using MeasureFn =
    llvm::function_ref<std::optional<int64_t>(const CompileOptions &)>;

/// What was found, in the order in which to say it.
struct FitAdvice {
  /// Each alone fits: the smallest change first.
  std::vector<std::string> fits;
  /// Each alone does not, and what it still needs.
  std::vector<std::string> tooLarge;
};

/// Looks for single options that make `options`, which need `needed` bytes, fit
/// their budget. What keeps ranks and training comes first (a smaller
/// micro-batch, dp traded for gtp), then what changes the numbers, then a
/// higher gtp degree, which takes more ranks. When none of them does, a higher
/// degree together with a smaller microbatch and the longest sequence that
/// allows it. `sequence` is the length compiled, tokens.
FitAdvice adviseFit(const CompileOptions &options, int64_t sequence,
                    int64_t needed, MeasureFn measure);

} // namespace gtp

#endif // GTP_LIB_TOOLS_FITADVICE_H
