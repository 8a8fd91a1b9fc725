//===- PlanHeader.cpp - What a plan says of model, mesh and origin --------===//

#include "GtpToPlan.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanStats.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/xxhash.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

const Communicators::Entry &Communicators::get(const CollectiveSpec &spec,
                                               Transport transport,
                                               bool spansNodes) {
  auto symbol =
      FlatSymbolRefAttr::get(mesh.getContext(), spec.communicatorName());
  // Entries are few: one for each purpose and set of axes.
  Entry *entry = llvm::find_if(
      entries, [&](const Entry &known) { return known.symbol == symbol; });
  if (entry == entries.end()) {
    SmallVector<int64_t> positions;
    for (StringAttr axis : mesh.sorted(spec.axes))
      positions.push_back(mesh.position(axis));
    entries.push_back({symbol, spec.purpose(), positions});
    entry = &entries.back();
  }
  auto kind = plan::pb::Collective::Transport(static_cast<int>(transport));
  entry->limits |= plan::holdsMultiprocessors(kind);
  entry->window |= plan::needsWindow(kind);
  entry->spansNodes |= spansNodes;
  if (transport == Transport::CopyEngine)
    entry->policy = CtaPolicy::Zero;
  return *entry;
}

void Communicators::emit(OpBuilder &builder, ProgramOp program) const {
  // Gathers run beside reductions, and scalars, no work for more than one
  // block, between these.
  bool shares = llvm::any_of(entries, [](const Entry &entry) {
    return entry.purpose == Purpose::Gather && entry.limits;
  });
  // 0 is no limit, so half of 1 is 1: the checker then says that two are held.
  const int64_t share = shares && ctaReserve > 1 ? ctaReserve / 2 : ctaReserve;
  DenseMap<StringAttr, int64_t> held;
  for (const Entry &entry : entries) {
    int64_t ctas = !entry.limits ? 0
                   : entry.purpose == Purpose::Scalar
                       ? std::min<int64_t>(share, 1)
                       : share;
    held[entry.symbol.getAttr()] = ctas;
    CommunicatorOp::create(builder, program.getLoc(), entry.symbol.getValue(),
                           entry.purpose, entry.axes, entry.policy, ctas, ctas,
                           /*priority=*/0, entry.window, entry.spansNodes);
  }
  program.walk([&](CollectiveOp op) {
    if (plan::holdsMultiprocessors(plan::pb::Collective::Transport(
            static_cast<int>(op.getTransport()))))
      op.setCtas(held.lookup(op.getCommunicatorAttr().getAttr()));
  });
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

static DictionaryAttr modelFields(ModuleOp module,
                                  const ParameterTable &parameters,
                                  func::FuncOp step, tfm::MicrobatchesOp body) {
  Builder builder(module.getContext());
  NamedAttrList fields;
  if (auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr))
    for (NamedAttribute entry : model)
      if (entry.getName() != "family")
        fields.append(entry);
  int64_t elements = 0;
  for (const ParameterEntry &entry : parameters.entries())
    elements += tfm::ParameterOp(entry.op).getType().getNumElements();
  fields.set("parameters", builder.getI64IntegerAttr(elements));

  double flops = 0;
  for (Operation &op : body.getBody().front())
    if (auto cost = dyn_cast<tfm::CostOpInterface>(op))
      flops += double(cost.getCost().flops);
  auto mesh = step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr);
  auto inputs = cast<RankedTensorType>(body.getInputs().front().getType());
  flops *= double(mesh.size()) * double(inputs.getDimSize(0));
  fields.set("flops_per_step", builder.getF64FloatAttr(flops));

  if (!parameters.optimizer().empty())
    fields.set("optimizer", builder.getStringAttr(parameters.optimizer()));
  for (auto clip : step.getOps<tfm::ClipScaleOp>())
    fields.set("clip_norm", clip.getMaxNormAttr());
  fields.set("loss", builder.getStringAttr("token-mean"));
  for (Operation &op : body.getBody().front())
    if (isa<tfm::CrossEntropyOp, tfm::CrossEntropyInPlaceOp>(op) &&
        op.hasAttr("sequence_mean"))
      fields.set("loss", builder.getStringAttr("sequence-mean"));
  return fields.getDictionary(module.getContext());
}

static DictionaryAttr numericsFields(const ParameterTable &parameters,
                                     tfm::MicrobatchesOp body) {
  MLIRContext *context = body.getContext();
  Builder builder(context);
  NamedAttrList fields;
  auto element = [](Value value) {
    return TypeAttr::get(
        cast<RankedTensorType>(value.getType()).getElementType());
  };
  if (!parameters.entries().empty()) {
    // What is not trained has neither a master copy nor a gradient.
    const ParameterEntry *trained =
        llvm::find_if(parameters.entries(), [](const ParameterEntry &entry) {
          return bool(entry.gradient);
        });
    const ParameterEntry &first = trained != parameters.entries().end()
                                      ? *trained
                                      : parameters.entries().front();
    fields.set("compute", element(first.weight));
    // Two halves make a float32.
    fields.set("master",
               first.remainder
                   ? TypeAttr::get(Float32Type::get(context))
                   : element(first.master ? first.master : first.weight));
    if (first.gradient) {
      fields.set("gradient", element(first.gradient));
      fields.set("wire", element(first.gradient));
    }
  }
  // All gradients are sent in one type.
  for (Operation &op : body.getBody().front())
    if (std::optional<CollectiveSpec> spec = collectiveSpec(&op);
        spec && spec->purpose() == Purpose::Reduce) {
      fields.set("wire", TypeAttr::get(spec->wire));
      break;
    }
  bool fast = llvm::any_of(body.getBody().getOps<tfm::AttentionGradOp>(),
                           [](auto op) { return op.getFast(); });
  fields.set("deterministic", builder.getBoolAttr(!fast));
  fields.set("attention_backward",
             builder.getStringAttr(fast ? "fast" : "deterministic"));
  return fields.getDictionary(context);
}

static DictionaryAttr provenanceFields(ModuleOp module,
                                       const machine::Profile &profile) {
  Builder builder(module.getContext());
  NamedAttrList fields;
  if (auto given = module->getAttrOfType<DictionaryAttr>(kProvenanceAttr))
    for (NamedAttribute entry : given)
      fields.append(entry);
  if (auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr))
    if (Attribute family = model.get("family"))
      fields.set("family", family);
  fields.set("target", builder.getStringAttr(profile.profileName));
  uint64_t hash = llvm::xxh3_64bits(StringRef(profile.text));
  fields.set("target_hash", builder.getI64IntegerAttr(int64_t(hash)));
  return fields.getDictionary(module.getContext());
}

/// What gtp-plan-step predicted: claims of the plan, and statistics.
static void predictFields(ProgramOp program, ModuleOp module) {
  auto predicted = module->getAttrOfType<DictionaryAttr>(kPlanStepAttr);
  if (!predicted)
    return;
  program.setClaimsAttr(predicted.getAs<DictionaryAttr>("claims"));
  program.setStatsAttr(predicted.getAs<DictionaryAttr>("stats"));
}

void gtp::describeProgram(ProgramOp program, ModuleOp module,
                          const ParameterTable &parameters, func::FuncOp step,
                          tfm::MicrobatchesOp body, const CostModel &costs) {
  program.setModelAttr(modelFields(module, parameters, step, body));
  program.setNumericsAttr(numericsFields(parameters, body));
  program.setProvenanceAttr(provenanceFields(module, costs.machine()));
  predictFields(program, module);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static LayoutAttr layoutOf(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  dist::PlacementAttr placement = dist::placementOf(type);
  dist::MeshAttr mesh = placement.getMesh();
  auto positions = [&](ArrayRef<StringAttr> axes) {
    return llvm::map_to_vector(
        axes, [&](StringAttr axis) { return int64_t(mesh.position(axis)); });
  };
  SmallVector<DimAttr> dims;
  for (dist::DimAttr dim : placement.getDims()) {
    SmallVector<SegmentAttr> segments;
    for (auto [name, size] :
         llvm::zip(dim.getSegmentNames(), dim.getSegmentSizes()))
      segments.push_back(SegmentAttr::get(context, name, size));
    dims.push_back(DimAttr::get(context, dim.getSize(), segments,
                                positions(dim.getComputeAxes()),
                                positions(dim.getStorageAxes()),
                                dim.getGranule() > 1 ? dim.getGranule() : 0));
  }
  return LayoutAttr::get(context, dims);
}

void gtp::emitParameter(OpBuilder &builder, const ParameterEntry &entry,
                        const Places &places) {
  tfm::ParameterOp op = entry.op;
  auto weight = cast<RankedTensorType>(entry.weight.getType());
  // The verifier of tfm.parameter admits these names only.
  Init init = symbolizeInit(op.getInit()).value_or(Init::Normal);
  SmallVector<Value> states = llvm::map_to_vector(
      entry.states, [&](Value state) { return places[state].buffer; });
  ArrayAttr tied = op.getTied();
  ParameterOp::create(
      builder, op.getLoc(), op.getSymName(), op.getType().getShape(),
      layoutOf(weight), init, op.getTensorNames(), op.getTensorRows(),
      op.getTensorLayoutsAttr(), tied && !tied.empty() ? tied : ArrayAttr(),
      entry.uses, entry.decay,
      /*frozen=*/!entry.gradient, places[entry.weight].buffer,
      entry.master ? places[entry.master].buffer : Value(),
      entry.remainder ? places[entry.remainder].buffer : Value(), states,
      entry.gradient ? places[entry.gradient].buffer : Value());
}
