//===- FuzzMlir.cpp - Damaged programs of our dialects --------------------===//
//
// Texts are the lit tests' inputs and small programs at every stage. What still
// parses goes through the passes that its test names, or the rest of the
// pipeline; what comes through is printed, parsed and, as a plan, checked.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"
#include "Fuzzer.h"
#include "Mutate.h"

#include "gtp/Conversion/PlanToProto.h"
#include "gtp/InitAll.h"
#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Tools/Pipeline.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;
using namespace gtp::fuzz;

namespace {

/// A pass as a command line names it.
struct NamedPass {
  std::string name, options;
};

struct Text {
  std::string text;
  /// What its test runs; empty: passes by chance.
  std::vector<NamedPass> passes;
  /// Which small program it is; none for a lit test's.
  std::optional<SmallProgram> program;
};

class MlirFuzzer : public Fuzzer {
public:
  MlirFuzzer();
  void run(Case &c) override;

private:
  void addLitTest(StringRef text);
  /// Whether there are passes to run.
  bool addPasses(Case &c, const Text &seed, ModuleOp module,
                 PassManager &passes);
  void readBack(Case &c, ModuleOp module);
  /// Errors of the case so far.
  unsigned errors = 0;
  std::vector<Text> small, lit;
};

} // namespace

/// Passes that a RUN line names.
static std::vector<NamedPass> passesOf(StringRef run) {
  std::vector<NamedPass> passes;
  run = run.split('|').first;
  while (!run.empty()) {
    run = run.drop_until([](char c) { return c == '-'; }).ltrim('-');
    StringRef name =
        run.take_until([](char c) { return c == ' ' || c == '='; });
    run = run.drop_front(name.size());
    StringRef options;
    if (run.consume_front("=")) {
      const char end = run.consume_front("\"") ? '"' : ' ';
      options = run.take_until([&](char c) { return c == end; });
      run = run.drop_front(options.size());
    }
    if (PassInfo::lookup(name))
      passes.push_back({name.str(), options.str()});
  }
  return passes;
}

void MlirFuzzer::addLitTest(StringRef text) {
  std::vector<std::vector<NamedPass>> runs;
  for (StringRef line : llvm::split(text, '\n'))
    if (line.contains("RUN:"))
      if (auto passes = passesOf(line); !passes.empty())
        runs.push_back(passes);
  while (!text.empty()) {
    auto [chunk, rest] = text.split("// -----");
    text = rest;
    lit.push_back({chunk.str(), {}, std::nullopt});
    for (const auto &passes : runs)
      lit.push_back({chunk.str(), passes, std::nullopt});
  }
}

MlirFuzzer::MlirFuzzer() {
  registerAllPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  for (const SmallProgram &program : smallPrograms()) {
    small.push_back({print(*compileTo(program, "", &context)), {}, program});
    for (const std::string &stage : stages())
      small.push_back(
          {print(*compileTo(program, stage, &context)), {}, program});
  }
  std::vector<std::string> paths;
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(GTP_TEST_SOURCES, code),
       end;
       it != end && !code; it.increment(code))
    if (StringRef(it->path()).ends_with(".mlir"))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto file = llvm::MemoryBuffer::getFile(path))
      addLitTest((*file)->getBuffer());
}

bool MlirFuzzer::addPasses(Case &c, const Text &seed, ModuleOp module,
                           PassManager &passes) {
  if (seed.program) {
    std::string after;
    if (auto stage = module->getAttrOfType<StringAttr>(kStageAttr))
      after = stage.str();
    llvm::Error error = buildPipeline(passes, seed.program->options, after, "");
    bool failed = bool(error);
    llvm::consumeError(std::move(error));
    return !failed;
  }
  std::vector<NamedPass> chosen = seed.passes;
  if (chosen.empty()) {
    std::vector<std::string> names = stages();
    names.insert(names.end(), {"canonicalize", "cse", "plan-verify"});
    for (size_t n = 1 + c.random.below(2); n--;)
      chosen.push_back({c.random.pick(names), ""});
  }
  for (const NamedPass &pass : chosen)
    if (failed(PassInfo::lookup(pass.name)->addToPipeline(
            passes, pass.options, [](const Twine &) { return failure(); })))
      return false;
  return true;
}

/// What came through is printed, parsed, and checked as a plan if it is one.
void MlirFuzzer::readBack(Case &c, ModuleOp module) {
  std::string text = print(module);
  OwningOpRef<ModuleOp> again =
      parseSourceString<ModuleOp>(text, module.getContext());
  if (!again)
    return c.fail("what came through the passes prints as what does not parse");
  if (print(*again) != text)
    return c.fail("what came through the passes changes when it is printed and "
                  "parsed");
  planir::ProgramOp program = findProgram(module);
  plan::pb::Plan plan;
  if (!program || failed(emitPlan(program, plan)))
    return;
  c.ran = true;
  (void)plan::planToText(plan);
  (void)plan::checkPlan(plan).isOk();
}

void MlirFuzzer::run(Case &c) {
  // Half are small programs, whose rest of the pipeline is long.
  const Text &seed = c.random.pick(c.random.below(2) ? small : lit);
  std::string text = seed.text;
  mutateMlir(text, c.random);
  c.keep(text);
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  errors = 0;
  ScopedDiagnosticHandler count(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    if (!errors)
      c.fail("the text does not parse, and there is no error");
    return;
  }
  readBack(c, *module);
  PassManager passes(&context, ModuleOp::getOperationName(),
                     PassManager::Nesting::Implicit);
  errors = 0;
  if (!addPasses(c, seed, *module, passes))
    return;
  if (failed(passes.run(*module))) {
    if (!errors)
      c.fail("a pass fails, and there is no error");
    return;
  }
  c.accepted = true;
  readBack(c, *module);
}

std::unique_ptr<Fuzzer> gtp::fuzz::createMlirFuzzer() {
  return std::make_unique<MlirFuzzer>();
}
