//===- Stats.cpp - The numbers of --stats ---------------------------------===//

#include "Stats.h"

#include "dialects/Tfm/TfmDialect.h"

#include "llvm/Support/JSON.h"

#include <map>

using namespace mlir;
using namespace gtp;

void gtp::writeStats(ModuleOp module, const CompileOptions &options,
                     double seconds, llvm::raw_ostream &stream) {
  // Sorted by key.
  std::map<std::string, llvm::json::Value> numbers;
  if (auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr))
    if (auto parameters = model.getAs<IntegerAttr>("parameters"))
      numbers.emplace("parameters", parameters.getInt());
  numbers.emplace("ranks", options.mesh.ranks());
  numbers.emplace("compile_s", seconds);

  llvm::json::OStream json(stream, /*IndentSize=*/2);
  json.object([&] {
    for (const auto &[key, value] : numbers)
      json.attribute(key, value);
  });
  stream << "\n";
}
