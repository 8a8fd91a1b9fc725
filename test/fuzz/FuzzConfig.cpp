//===- FuzzConfig.cpp - Damaged configs of models -------------------------===//
//
// Each is refused with exactly one error, or becomes a verified program.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"
#include "Fuzzer.h"
#include "Mutate.h"

#include "gtp/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;
using namespace gtp::fuzz;

namespace {

class ConfigFuzzer : public Fuzzer {
public:
  ConfigFuzzer();
  void run(Case &c) override;

private:
  /// Configs that are imported, and those that are refused already: behind
  /// their first error may be more.
  std::vector<std::string> working, refused;
};

} // namespace

ConfigFuzzer::ConfigFuzzer() {
  std::vector<std::string> paths;
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(GTP_TEST_SOURCES, code),
       end;
       it != end && !code; it.increment(code))
    if (StringRef(it->path()).ends_with(".json"))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silent(&context,
                                 [](Diagnostic &) { return success(); });
  for (const std::string &path : paths)
    if (auto file = llvm::MemoryBuffer::getFile(path)) {
      StringRef text = (*file)->getBuffer();
      bool works = bool(importConfig(text, path, ImportOptions(), &context));
      (works ? working : refused).push_back(text.str());
    }
}

void ConfigFuzzer::run(Case &c) {
  std::string text = c.random.pick(c.random.below(8) ? working : refused);
  mutateJson(text, c.random);
  c.keep(text);
  ImportOptions options;
  if (c.random.below(4) == 0) {
    options.sequence = static_cast<int64_t>(1 + c.random.below(5000));
    options.element = Element::F32;
    options.microbatches = 3;
  }
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  ScopedDiagnosticHandler count(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> module =
      importConfig(text, "mutant.json", options, &context);
  c.accepted = bool(module);
  if (errors != (module ? 0 : 1))
    c.fail(std::to_string(errors) + " errors for a config that was " +
           (module ? "imported" : "refused"));
  else if (module && failed(verify(*module)))
    c.fail("the imported program does not verify");
}

std::unique_ptr<Fuzzer> gtp::fuzz::createConfigFuzzer() {
  return std::make_unique<ConfigFuzzer>();
}
