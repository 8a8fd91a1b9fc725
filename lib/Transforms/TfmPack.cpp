//===- TfmPack.cpp - Linears that share an input become one ---------------===//

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace gtp {
#define GEN_PASS_DEF_TFMPACKPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

/// "a.q.w", "a.k.w" -> "a.q|k.w": what dotted names share is written once.
static std::string joinNames(ArrayRef<StringRef> names) {
  StringRef prefix = names.front();
  for (StringRef name : names) {
    size_t length = 0;
    while (length < std::min(prefix.size(), name.size()) &&
           prefix[length] == name[length])
      ++length;
    prefix = prefix.take_front(length);
  }
  prefix = prefix.take_front(prefix.rfind('.') + 1);

  StringRef suffix = names.front().drop_front(prefix.size());
  for (StringRef name : names) {
    StringRef rest = name.drop_front(prefix.size());
    size_t length = 0;
    while (length < std::min(suffix.size(), rest.size()) &&
           suffix[suffix.size() - 1 - length] == rest[rest.size() - 1 - length])
      ++length;
    suffix = suffix.take_back(length);
  }
  suffix = suffix.drop_front(std::min(suffix.find('.'), suffix.size()));

  auto middles = llvm::map_range(names, [&](StringRef name) {
    return name.drop_front(prefix.size()).drop_back(suffix.size());
  });
  return (prefix + llvm::join(middles, "|") + suffix).str();
}

/// The joined name of the locations, or all of them where one has no name.
static Location joinLocations(ArrayRef<Location> locations) {
  MLIRContext *context = locations.front().getContext();
  SmallVector<StringRef> names;
  for (Location loc : locations) {
    auto name = loc->findInstanceOf<NameLoc>();
    if (!name)
      return FusedLoc::get(context, locations);
    names.push_back(name.getName());
  }
  return NameLoc::get(
      StringAttr::get(context, joinNames(names)),
      locations.front()->findInstanceOf<NameLoc>().getChildLoc());
}

namespace {
struct Candidate {
  LinearOp linear;
  GetOp get;
  ParameterOp parameter;

  bool joins(Candidate other) {
    return linear->getBlock() == other.linear->getBlock() &&
           parameter.getInit() == other.parameter.getInit() &&
           parameter.isDecidedAs(other.parameter) &&
           parameter.getType().getElementType() ==
               other.parameter.getType().getElementType() &&
           parameter->getDiscardableAttrDictionary() ==
               other.parameter->getDiscardableAttrDictionary();
  }
};

struct TfmPackPass : public gtp::impl::TfmPackPassBase<TfmPackPass> {
  void runOnOperation() override;
};
} // namespace

/// Linears that may be packed, grouped; in program order.
static SmallVector<SmallVector<Candidate>> findGroups(ModuleOp module,
                                                      SymbolTable &symbols) {
  DenseMap<StringAttr, unsigned> uses;
  if (auto range = SymbolTable::getSymbolUses(&module.getBodyRegion()))
    for (SymbolTable::SymbolUse use : *range)
      ++uses[use.getSymbolRef().getRootReference()];

  llvm::MapVector<Value, SmallVector<SmallVector<Candidate>>> byInput;
  module.walk([&](LinearOp linear) {
    auto get = linear.getW().getDefiningOp<GetOp>();
    if (!get || !get->hasOneUse())
      return;
    auto parameter =
        symbols.lookup<ParameterOp>(get.getParameterAttr().getAttr());
    if (!parameter || !parameter.getTied().empty() ||
        uses.lookup(parameter.getSymNameAttr()) != 1)
      return;
    Candidate candidate{linear, get, parameter};
    auto &groups = byInput[linear.getX()];
    auto *group = llvm::find_if(
        groups, [&](auto &group) { return group.front().joins(candidate); });
    if (group == groups.end())
      groups.push_back({candidate});
    else
      group->push_back(candidate);
  });

  SmallVector<SmallVector<Candidate>> result;
  for (auto &[input, groups] : byInput)
    for (auto &group : groups)
      if (group.size() > 1)
        result.push_back(group);
  return result;
}

/// One parameter of the rows of all of them, in order, in place of the first.
static ParameterOp packParameters(ArrayRef<Candidate> group,
                                  SymbolTable &symbols) {
  ParameterOp first = group.front().parameter;
  OpBuilder builder(first);
  int64_t rows = 0;
  SmallVector<StringRef> symbolNames;
  SmallVector<Attribute> tensorNames;
  SmallVector<int64_t> tensorRows, tensorLayouts;
  SmallVector<Location> locations;
  for (Candidate member : group) {
    ParameterOp parameter = member.parameter;
    SmallVector<int64_t> plain(2 * parameter.getTensorRows().size(), 0);
    llvm::append_range(tensorLayouts,
                       parameter.getTensorLayouts().value_or(plain));
    rows += parameter.getType().getDimSize(0);
    symbolNames.push_back(parameter.getSymName());
    llvm::append_range(tensorNames, parameter.getTensorNames());
    llvm::append_range(tensorRows, parameter.getTensorRows());
    locations.push_back(parameter.getLoc());
  }
  auto type = RankedTensorType::get({rows, first.getType().getDimSize(1)},
                                    first.getType().getElementType());
  auto packed = ParameterOp::create(
      builder, joinLocations(locations),
      builder.getStringAttr(joinNames(symbolNames)), TypeAttr::get(type),
      first.getInitAttr(), builder.getArrayAttr(tensorNames),
      builder.getDenseI64ArrayAttr(tensorRows), first.getTiedAttr(),
      llvm::any_of(tensorLayouts, [](int64_t number) { return number != 0; })
          ? builder.getDenseI64ArrayAttr(tensorLayouts)
          : DenseI64ArrayAttr(),
      first.getFrozenAttr(), first.getReplicatedAttr(),
      first.getPrefetchAttr());
  packed->setDiscardableAttrs(first->getDiscardableAttrDictionary());
  packed->remove();
  symbols.insert(packed, Block::iterator(first));
  return packed;
}

static void pack(ArrayRef<Candidate> group, SymbolTable &symbols) {
  LinearOp first = group.front().linear;
  RankedTensorType type = first.getResult().getType();
  SmallVector<Location> locations;
  SmallVector<Type> pieces;
  for (Candidate member : group) {
    locations.push_back(member.linear.getLoc());
    pieces.push_back(member.linear.getResult().getType());
  }
  ParameterOp parameter = packParameters(group, symbols);

  GetOp firstGet = group.front().get;
  OpBuilder builder(first);
  Location loc = joinLocations(locations);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = parameter.getType().getDimSize(0);
  auto get = GetOp::create(builder, firstGet.getLoc(), parameter.getType(),
                           FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  auto linear = LinearOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()),
      first.getX(), get);
  auto split = SplitOp::create(builder, loc, pieces, linear);
  for (auto [member, piece] : llvm::zip_equal(group, split.getResults())) {
    LinearOp old = member.linear;
    old.replaceAllUsesWith(piece);
  }
  for (Candidate member : group) {
    member.linear->erase();
    member.get->erase();
    symbols.erase(member.parameter);
  }
}

void TfmPackPass::runOnOperation() {
  SymbolTable symbols(getOperation());
  for (ArrayRef<Candidate> group : findGroups(getOperation(), symbols))
    pack(group, symbols);
}
