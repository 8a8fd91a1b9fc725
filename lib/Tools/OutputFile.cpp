//===- OutputFile.cpp - Outputs that are whole or not there ---------------===//

#include "OutputFile.h"

#include "gtp/Support/LinkTarget.h"

#include "llvm/Support/FileSystem.h"

using namespace gtp;
using llvm::Error;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

/// Ends a stream, says what went wrong on the way, and goes on if nothing did.
static Error finish(llvm::raw_fd_ostream &stream, StringRef path,
                    llvm::function_ref<Error()> next) {
  stream.flush();
  if (!stream.has_error())
    return next ? next() : Error::success();
  std::error_code code = stream.error();
  stream.clear_error();
  return llvm::createFileError(path, code);
}

static Error writeDirectly(StringRef path,
                           llvm::function_ref<Error(llvm::raw_ostream &)> write,
                           llvm::function_ref<Error()> next) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return llvm::createFileError(path, code);
  if (Error error = write(stream))
    return error;
  return finish(stream, path, next);
}

Error gtp::writeOutput(StringRef path,
                       llvm::function_ref<Error(llvm::raw_ostream &)> write,
                       llvm::function_ref<Error()> next) {
  if (path == "-") {
    if (Error error = write(llvm::outs()))
      return error;
    return finish(llvm::outs(), "standard output", next);
  }
  // A symbolic link stays one: its target is what is replaced.
  const std::string target = linkTarget(path.str());
  fs::file_status status;
  std::error_code code = fs::status(path, status);
  if (code == std::errc::too_many_symbolic_link_levels)
    return llvm::createFileError(path, code);
  if (!code && status.type() != fs::file_type::regular_file)
    return writeDirectly(path, write, next);
  llvm::Expected<fs::TempFile> file = fs::TempFile::create(
      target + ".%%%%%%.tmp", fs::all_read | fs::all_write);
  if (!file)
    return llvm::createFileError(path, file.takeError());
  Error error = Error::success();
  {
    llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    error = write(stream);
    if (!error)
      error = finish(stream, path, next);
    stream.clear_error();
  }
  if (error)
    return llvm::joinErrors(std::move(error), file->discard());
  return file->keep(target);
}
