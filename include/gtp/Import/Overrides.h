//===- Overrides.h - What is decided for single parameters ----------------===//
//
// Options and a file name parameters by regular expressions and say what is
// decided for them alone. The result is in the program: attributes of its
// tfm.parameter ops. docs/overrides.md is the format for users.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_IMPORT_OVERRIDES_H
#define GTP_IMPORT_OVERRIDES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gtp {

/// The options of gtp-opt that decide for single parameters.
struct OverrideOptions {
  /// Parameters that are not trained; empty: none.
  std::string freeze;
  /// Parameters that every rank holds whole; empty: none.
  std::string replicate;
  /// A file of decisions for single parameters; empty: none.
  std::string file;
};

/// An error that says where, if `pattern` is no POSIX extended regular
/// expression.
llvm::Error checkRegex(llvm::StringRef pattern);

/// Sets `frozen`, `replicated` and `prefetch` of the parameters that the
/// expressions find in one of their checkpoint names. The file counts more than
/// the two options. Reports an expression that finds nothing or only some rows
/// of a parameter, decisions that contradict each other, and a program that has
/// no trained parameter left.
mlir::LogicalResult applyOverrides(mlir::ModuleOp module,
                                   const OverrideOptions &options);

} // namespace gtp

#endif // GTP_IMPORT_OVERRIDES_H
