//===- Stats.cpp - The numbers of --stats ---------------------------------===//

#include "Stats.h"

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Tfm/TfmDialect.h"

#include "llvm/Support/JSON.h"

#include <map>

using namespace mlir;
using namespace gtp;

/// What passes measure: the keys of --stats that are claims or statistics of a
/// plan.
static constexpr llvm::StringLiteral kPassKeys[] = {
    "arena_bytes",  "max_live_bytes", "persistent_bytes",
    "step_us",      "compute_us",     "gathered_peak_bytes",
    "stall_us",     "contention_us",  "step_lower_bound_us",
    "naive_events", "events",
};

static llvm::json::Value toJson(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return number.getInt();
  return nullptr;
}

void gtp::writeStats(ModuleOp module, const CompileOptions &options,
                     double seconds, llvm::raw_ostream &stream) {
  // Sorted by key.
  std::map<StringRef, llvm::json::Value> numbers;
  auto adopt = [&](DictionaryAttr fields) {
    for (StringRef key : kPassKeys)
      if (Attribute value = fields ? fields.get(key) : Attribute())
        numbers.insert_or_assign(key, toJson(value));
  };
  if (auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr))
    if (Attribute parameters = model.get("parameters"))
      numbers.emplace("parameters", toJson(parameters));
  module.walk([&](planir::ProgramOp program) {
    int64_t kernels = 0, collectives = 0;
    // Of the training step.
    for (auto region : program.getOps<planir::RegionOp>()) {
      region.walk([&](planir::KernelOp) { ++kernels; });
      region.walk([&](planir::CollectiveOp) { ++collectives; });
    }
    adopt(program.getClaimsAttr());
    adopt(program.getStatsAttr());
    numbers.insert_or_assign("kernels", kernels);
    numbers.insert_or_assign("collectives", collectives);
    if (DictionaryAttr model = program.getModelAttr())
      if (Attribute parameters = model.get("parameters"))
        numbers.insert_or_assign("parameters", toJson(parameters));
  });
  numbers.insert_or_assign("budget_bytes", options.memoryBudget);
  numbers.emplace("attention_backward",
                  options.fastAttention ? "fast" : "deterministic");
  numbers.emplace("ranks", options.mesh.ranks());
  numbers.emplace("compile_s", seconds);

  llvm::json::OStream json(stream, /*IndentSize=*/2);
  json.object([&] {
    for (const auto &[key, value] : numbers)
      json.attribute(key, value);
  });
  stream << "\n";
}
