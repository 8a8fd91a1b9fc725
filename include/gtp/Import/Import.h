//===- Import.h - Hugging Face config.json to a tfm forward program -------===//
//
// A config becomes a module with one `tfm.parameter` a weight, named as
// checkpoints name it, and `@forward(tokens, labels, count) -> loss` for all
// sequences of one microbatch. Diagnostics go to the context, at the place in
// the config that they are about.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_IMPORT_IMPORT_H
#define GTP_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gtp {

/// Types that programs are compiled in.
enum class Element { F32, BF16 };

/// What the command line adds to a config.
struct ImportOptions {
  /// Tokens a sequence; 0 means min(2048, the model's positions).
  int64_t sequence = 0;
  /// Sequences a data rank a microbatch.
  int64_t microBatch = 1;
  /// Ranks that the sequences of a microbatch are split over.
  int64_t dataRanks = 1;
  /// Microbatches a step.
  int64_t microbatches = 1;
  /// Type of weights and activations.
  Element element = Element::BF16;
  /// The id that ends each document of a sequence: positions count from the
  /// start of the document and attention stays in it. None: a sequence is one.
  std::optional<int64_t> documentSeparator;
  /// The loss is the mean over sequences of their means, not over tokens.
  bool sequenceMean = false;
  /// The user knows that dropout is not applied: no warning.
  bool dropoutAcknowledged = false;
};

/// Builds the verified forward program of the config `text`, or reports one
/// error and returns null. `file` names the config in locations.
mlir::OwningOpRef<mlir::ModuleOp> importConfig(llvm::StringRef text,
                                               llvm::StringRef file,
                                               const ImportOptions &options,
                                               mlir::MLIRContext *context);

/// "gemma2, gpt2, ...": the families that importConfig knows.
std::string supportedFamilies();

} // namespace gtp

#endif // GTP_IMPORT_IMPORT_H
