//===- CollectiveSpec.cpp - A collective of a plan, checked ---------------===//

#include "CollectiveSpec.h"

#include "gtp/Plan/Operand.h"

#include <optional>
#include <string>
#include <utility>

using namespace gtp;
using namespace gtp::rt;
namespace pb = gtp::plan::pb;
using pb::Collective;

static Status checkReduction(const Collective &collective, pb::DType type) {
  pb::DType wire = collective.wire(), sums = collective.accumulation();
  bool fits = type == pb::F64 || type == pb::I64
                  ? wire == type && sums == type
                  : (type == pb::F32 || type == pb::BF16) &&
                        (wire == pb::F32 || wire == pb::BF16) &&
                        (sums == pb::F32 || sums == pb::F64);
  if (!fits)
    return Status::error(
        std::string("it reduces ") + plan::dtypeName(type) + ", sent as " +
        plan::dtypeName(wire) + " and accumulated in " + plan::dtypeName(sums) +
        "; reductions are of f32 and bf16, sent as either and accumulated in "
        "f32 or f64, and of f64 and i64 as themselves");
  if (collective.order() != Collective::FLAT)
    return Status::error("reductions are in order FLAT, not RING");
  if (collective.reduce() != Collective::SUM &&
      collective.reduce() != Collective::MAX)
    return Status::error("it reduces with an operation that does not exist");
  return Status::ok();
}

/// Checks one pair; `ratio` is how many elements of the larger side make one of
/// the smaller.
static Status checkMember(const pb::Operand &source,
                          const pb::Operand &destination, Collective::Kind kind,
                          uint32_t groupSize) {
  const std::string pair =
      plan::describe(source) + " and " + plan::describe(destination);
  if (source.dtype() != destination.dtype())
    return Status::error("source and destination differ in type: " + pair);
  if (!plan::isDense(source) || !plan::isDense(destination))
    return Status::error("source and destination must be dense: " + pair);
  uint64_t in = *plan::elementCount(source);
  uint64_t out = *plan::elementCount(destination);
  if (kind == Collective::ALL_GATHER)
    std::swap(in, out);
  std::optional<uint64_t> expected = in;
  if (kind != Collective::ALL_REDUCE)
    expected = plan::checkedMul(out, groupSize);
  if (kind == Collective::ALL_REDUCE ? in != out : in != expected)
    return Status::error("the counts of " + pair + " do not fit a group of " +
                         std::to_string(groupSize) + " ranks");
  return Status::ok();
}

StatusOr<CollectiveSpec> gtp::rt::readCollective(const Collective &collective,
                                                 uint32_t groupSize) {
  CollectiveSpec spec;
  spec.kind = collective.kind();
  spec.reduce = collective.reduce();
  if (spec.kind != Collective::ALL_GATHER &&
      spec.kind != Collective::REDUCE_SCATTER &&
      spec.kind != Collective::ALL_REDUCE)
    return Status::error("there is all-gather, reduce-scatter and "
                         "all-reduce, not " +
                         Collective::Kind_Name(spec.kind));
  if (collective.sources_size() == 0 ||
      collective.sources_size() != collective.destinations_size())
    return Status::error("it has " + std::to_string(collective.sources_size()) +
                         " sources and " +
                         std::to_string(collective.destinations_size()) +
                         " destinations; it needs as many, at least one");
  spec.type = collective.sources(0).dtype();
  spec.wire = collective.wire();
  spec.accumulation = collective.accumulation();
  spec.transport = collective.transport();
  spec.ranks = groupSize;
  std::string whyNot = plan::whyNotBy(
      spec.transport, plan::CollectiveMeaning::of(collective, groupSize));
  if (!whyNot.empty())
    return Status::error("it goes " + whyNot);
  if (spec.kind != Collective::ALL_GATHER)
    GTP_RETURN_IF_ERROR(checkReduction(collective, spec.type));
  for (int i = 0; i < collective.sources_size(); ++i) {
    const pb::Operand &source = collective.sources(i);
    const pb::Operand &destination = collective.destinations(i);
    if (source.dtype() != spec.type)
      return Status::error("its members differ in type");
    if (source.accumulate() ||
        (destination.accumulate() && spec.kind == Collective::ALL_GATHER))
      return Status::error("only the destination of a reduction accumulates");
    GTP_RETURN_IF_ERROR(checkMember(source, destination, spec.kind, groupSize));
    spec.counts.push_back(*plan::elementCount(source));
  }
  whyNot = plan::whyNotWithScratch(collective, groupSize);
  if (!whyNot.empty())
    return Status::error("it goes " + whyNot);
  return spec;
}
