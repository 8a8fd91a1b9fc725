//===- Import.cpp - Hugging Face config.json to a tfm forward program -----===//

#include "gtp/Import/Import.h"

#include "ConfigReader.h"
#include "Family.h"

#include "dialects/Tfm/TfmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gtp;

static constexpr Family kFamilies[] = {
    {"gemma2", "Gemma2ForCausalLM", importGemma2},
    {"gpt2", "GPT2LMHeadModel", importGpt2},
    {"gpt_neox", "GPTNeoXForCausalLM", importGptNeoX},
    {"llama", "LlamaForCausalLM", importLlama},
    {"mistral", "MistralForCausalLM", importMistral},
    {"olmo2", "Olmo2ForCausalLM", importOlmo2},
    {"phi3", "Phi3ForCausalLM", importPhi3},
    {"qwen2", "Qwen2ForCausalLM", importQwen2},
    {"qwen3", "Qwen3ForCausalLM", importQwen3},
};

std::string gtp::supportedFamilies() {
  return llvm::join(
      llvm::map_range(kFamilies,
                      [](const Family &family) { return family.modelType; }),
      ", ");
}

/// The family that `model_type` names, else architectures[0].
static const Family *findFamily(const ConfigObject &config) {
  std::optional<StringRef> type = config.string("model_type");
  std::optional<SmallVector<StringRef>> list = config.strings("architectures");
  std::optional<StringRef> architecture;
  if (list && !list->empty())
    architecture = list->front();
  if (config.reader().failed())
    return nullptr;
  if (!type && !architecture) {
    config.error("", "the config names no model family: it has neither "
                     "'model_type' nor 'architectures'; supported: " +
                         Twine(supportedFamilies()));
    return nullptr;
  }
  for (const Family &family : kFamilies) {
    if (type ? *type != family.modelType : *architecture != family.architecture)
      continue;
    // The same layers may carry another head, as classifiers do.
    if (architecture && *architecture != family.architecture)
      config.warn("architectures", "'" + *architecture +
                                       "' is compiled as the language model '" +
                                       family.architecture + "'");
    return &family;
  }
  config.error(
      type ? "model_type" : "architectures",
      "model family '" + (type ? *type : *architecture).take_front(60) +
          "' is not supported; supported: " + Twine(supportedFamilies()));
  return nullptr;
}

OwningOpRef<ModuleOp> gtp::importConfig(StringRef text, StringRef file,
                                        const ImportOptions &options,
                                        MLIRContext *context) {
  context->loadDialect<tfm::TfmDialect, func::FuncDialect>();
  std::unique_ptr<ConfigReader> reader =
      ConfigReader::parse(text, file, context);
  if (!reader)
    return nullptr;
  ConfigObject config = reader->root();
  const Family *family = findFamily(config);
  if (!family)
    return nullptr;
  OwningOpRef<ModuleOp> module = family->import(config, options);
  if (reader->failed() || !module)
    return nullptr;
  auto model = (*module)->getAttrOfType<DictionaryAttr>(tfm::kModelAttr);
  int64_t vocabulary = model.getAs<IntegerAttr>("vocabulary").getInt();
  if (options.documentSeparator && *options.documentSeparator >= vocabulary) {
    config.error("vocab_size",
                 "--document-separator=" + Twine(*options.documentSeparator) +
                     " is no token of a vocabulary of " + Twine(vocabulary) +
                     "; expected 0 to " + Twine(vocabulary - 1));
    return nullptr;
  }
  reader->reportLeftovers(family->modelType);
  if (failed(verify(*module)))
    return nullptr;
  return module;
}
