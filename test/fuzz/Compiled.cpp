//===- Compiled.cpp -------------------------------------------------------===//

#include "Compiled.h"
#include "Fuzzer.h"

#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Import/Import.h"
#include "gtp/InitAll.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Tools/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::fuzz;

/// Odd sizes, so that shards have pads.
static const char kTied[] = R"({"model_type": "llama",
"vocab_size": 13, "hidden_size": 12, "intermediate_size": 10,
"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
"head_dim": 4, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
"hidden_act": "silu", "tie_word_embeddings": true})";
static const char kBiases[] = R"({"model_type": "gpt2",
"vocab_size": 11, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 8,
"activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0,
"attn_pdrop": 0})";

static SmallProgram small(const char *config, StringRef mesh,
                          int64_t microbatches) {
  SmallProgram program;
  program.config = config;
  program.options.mesh = llvm::cantFail(parseMeshOption("mesh", mesh));
  program.options.sequence = 3;
  program.options.dtype = Element::F32;
  program.options.globalBatch = program.options.mesh.dataRanks() * microbatches;
  return program;
}

std::vector<SmallProgram> gtp::fuzz::smallPrograms() {
  std::vector<SmallProgram> programs = {
      small(kTied, "gtp=3", 2), small(kTied, "dp=2,gtp=2", 3),
      small(kBiases, "gtp=2", 1), small(kTied, "dp=2", 1)};
  programs[1].options.clipNorm = 1;
  programs[2].options.optimizer = CompileOptions::Optimizer::Sgd;
  programs[3].options.prefetch = false;
  return programs;
}

const DialectRegistry &gtp::fuzz::dialects() {
  static const DialectRegistry registry = [] {
    DialectRegistry result;
    registerAllDialects(result);
    return result;
  }();
  return registry;
}

std::vector<std::string> gtp::fuzz::stages() {
  return {"tfm-pack",
          "tfm-differentiate",
          "gtp-place",
          "gtp-partition",
          "gtp-plan-step",
          "gtp-prefetch",
          "convert-gtp-to-plan",
          "plan-assign-memory",
          "plan-insert-events"};
}

std::string gtp::fuzz::print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

OwningOpRef<ModuleOp> gtp::fuzz::compileTo(const SmallProgram &program,
                                           StringRef stage,
                                           MLIRContext *context) {
  OwningOpRef<ModuleOp> module = importConfig(
      program.config, "small.json", program.options.importOptions(), context);
  if (!module)
    llvm::report_fatal_error("a small config is refused");
  if (stage.empty())
    return module;
  PassManager passes(context, ModuleOp::getOperationName());
  llvm::cantFail(buildPipeline(passes, program.options, "", stage));
  if (failed(passes.run(*module)))
    llvm::report_fatal_error("a small program does not compile");
  (*module)->setAttr(kStageAttr, StringAttr::get(context, stage));
  return module;
}

std::vector<std::string> gtp::fuzz::compiledPlans() {
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  std::vector<std::string> plans;
  for (const SmallProgram &program : smallPrograms()) {
    OwningOpRef<ModuleOp> module =
        compileTo(program, "plan-insert-events", &context);
    planir::ProgramOp op = findProgram(*module);
    plan::pb::Plan plan;
    if (!op || failed(emitPlan(op, plan)))
      llvm::report_fatal_error("a small program makes no plan");
    plans.push_back(plan::serializePlan(plan));
  }
  return plans;
}
