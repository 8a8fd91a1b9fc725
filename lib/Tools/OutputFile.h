//===- OutputFile.h - Outputs that are whole or not there -----------------===//

#ifndef GTP_LIB_TOOLS_OUTPUTFILE_H
#define GTP_LIB_TOOLS_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace gtp {

/// Gives `write` a stream to `path`. A regular file gets its name only once all
/// of it is written, and keeps its old content when anything fails; "-" is
/// standard output, and what is no regular file (a pipe) is written to
/// directly. `next` runs when all is written and before the file gets its name.
llvm::Error
writeOutput(llvm::StringRef path,
            llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write,
            llvm::function_ref<llvm::Error()> next = nullptr);

} // namespace gtp

#endif // GTP_LIB_TOOLS_OUTPUTFILE_H
