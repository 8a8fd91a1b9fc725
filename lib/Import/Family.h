//===- Family.h - The table of model families -----------------------------===//
//
// A family is one file that defines its importer, declared here, and one row of
// the table in Import.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_IMPORT_FAMILY_H
#define GTP_LIB_IMPORT_FAMILY_H

#include "ConfigReader.h"
#include "gtp/Import/Import.h"

namespace gtp {

struct Family {
  /// `model_type` of its configs.
  llvm::StringLiteral modelType;
  /// `architectures[0]` of its configs.
  llvm::StringLiteral architecture;
  /// Builds the program. When the reader has reported an error the result does
  /// not matter.
  mlir::OwningOpRef<mlir::ModuleOp> (*import)(const ConfigObject &config,
                                              const ImportOptions &options);
};

mlir::OwningOpRef<mlir::ModuleOp> importGemma2(const ConfigObject &config,
                                               const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importGpt2(const ConfigObject &config,
                                             const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importGptNeoX(const ConfigObject &config,
                                                const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importLlama(const ConfigObject &config,
                                              const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importMistral(const ConfigObject &config,
                                                const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importOlmo2(const ConfigObject &config,
                                              const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importPhi3(const ConfigObject &config,
                                             const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importQwen2(const ConfigObject &config,
                                              const ImportOptions &options);
mlir::OwningOpRef<mlir::ModuleOp> importQwen3(const ConfigObject &config,
                                              const ImportOptions &options);

} // namespace gtp

#endif // GTP_LIB_IMPORT_FAMILY_H
