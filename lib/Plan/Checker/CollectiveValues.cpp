//===- CollectiveValues.cpp - What collectives make of abstract values ----===//

#include "Interpreter.h"

#include "gtp/Plan/Operand.h"

using namespace gtp::plan;
using namespace gtp::plan::check;

void Interpreter::collective(const OperationInfo &info) {
  size_t members = info.touches.size() / 2;
  bool gather =
      info.operation->collective().kind() == pb::Collective::ALL_GATHER;
  for (size_t i = 0; i < members; ++i) {
    const Touch &source = info.touches[i];
    const Touch &destination = info.touches[members + i];
    gather ? allGather(source, destination) : reduce(source, destination);
  }
  if (info.operation->collective().has_scratch())
    write(info.touches.back(), Tag());
}

static uint32_t namedParameter(const OperationInfo &info) {
  return info.operation->collective().parameter_plus1();
}

void Interpreter::allGather(const Touch &source, const Touch &destination) {
  const OperationInfo &info = region->operations[operation];
  AxisMask axes =
      c.communicatorMask(info.operation->collective().communicator());
  bool inPlace = !source.operand->rank_strides().empty();
  Read value = inPlace ? takeOwnPiece(source) : read(source);
  std::string gathers = "gathers " + c.bufferText(source.buffer()) +
                        " bytes [" + std::to_string(source.begin) + ", " +
                        std::to_string(source.end) + ")";
  Tag tag = value.tag;
  switch (value.content) {
  case Content::Weight: {
    uint32_t p = value.tag.parameter;
    uint64_t shard = shardBytes(p, value.tag.dtype);
    if (value.tag.cut != axes)
      fail("weight-version", gathers + " over " + c.axesText(axes) +
                                 ", found " + describe(value) + " cut over " +
                                 c.axesText(value.tag.cut));
    if (value.base != 0 || value.valid != shard ||
        *byteExtent(*source.operand) != shard)
      fail("weight-version",
           gathers + ", found bytes [" + std::to_string(value.base) + ", " +
               std::to_string(value.base + value.valid) + ") of the shard of " +
               c.parameterText(p) + " of " + std::to_string(shard) +
               " bytes, expected exactly all of it");
    if (namedParameter(info) && namedParameter(info) - 1 != p)
      fail("weight-version", gathers + " as " +
                                 c.parameterText(namedParameter(info) - 1) +
                                 ", found " + describe(value));
    tag.cut = 0;
    // Shards pad with zeros, all of them behind the last row.
    return writeValue(destination, tag, logicalBytes(p, value.tag.dtype));
  }
  case Content::Gradient:
    fail("role", gathers + ", found " + describe(value) +
                     ", expected a weight or an activation");
    break;
  default:
    if (value.partial != 0)
      fail("partial", gathers + ", which is still partial over " +
                          c.axesText(value.partial));
    break;
  }
  tag = Tag();
  tag.content = Content::Data;
  tag.id = mixHash(mixHash(3, axes), value.id);
  write(destination, tag);
}

void Interpreter::reduce(const Touch &source, const Touch &destination) {
  const OperationInfo &info = region->operations[operation];
  const pb::Collective &collective = info.operation->collective();
  AxisMask axes = c.communicatorMask(collective.communicator());
  Read value = read(source);
  std::string reduces =
      "reduces " + c.bufferText(source.buffer()) + " over " + c.axesText(axes);
  if (collective.reduce() == pb::Collective::MAX) {
    if (value.partial != 0 || value.content >= Content::Weight)
      fail("partial", reduces + " to the maximum, found " + describe(value) +
                          " partial over " + c.axesText(value.partial));
  } else if ((axes & ~value.partial) != 0 || value.content == Content::Weight) {
    bool gradient = value.content == Content::Gradient;
    fail(gradient ? "exactly-once" : "partial",
         reduces + ", found " + describe(value) + " partial over " +
             c.axesText(value.partial) +
             ": each axis must be reduced exactly once");
  }
  AxisMask left = value.partial & ~axes;
  if (value.content == Content::Gradient) {
    uint32_t p = value.tag.parameter;
    if (namedParameter(info) && namedParameter(info) - 1 != p)
      fail("exactly-once", reduces + " as the gradient of " +
                               c.parameterText(namedParameter(info) - 1) +
                               ", found " + describe(value));
    if (collective.kind() == pb::Collective::REDUCE_SCATTER)
      return scatterGradient(value, source, destination);
    Tag tag = value.tag;
    tag.partial = left;
    if (value.base != 0)
      fail("role", reduces + ", found a piece of " + describe(value) +
                       " that does not start at its beginning");
    return writeReduced(destination, tag, value.valid);
  }
  Tag tag;
  tag.content = Content::Data;
  tag.partial = left;
  tag.parts = value.parts;
  tag.id = mixHash(mixHash(4 + collective.kind(), axes), value.id);
  writeReduced(destination, tag, 0);
}

/// A whole gradient, its pads zero, becomes the rank's shard.
void Interpreter::scatterGradient(const Read &value, const Touch &source,
                                  const Touch &destination) {
  const OperationInfo &info = region->operations[operation];
  AxisMask axes =
      c.communicatorMask(info.operation->collective().communicator());
  uint32_t p = value.tag.parameter;
  pb::DType type = value.tag.dtype;
  std::string scatters = "scatters " + c.bufferText(source.buffer()) +
                         " bytes [" + std::to_string(source.begin) + ", " +
                         std::to_string(source.end) + ") over " +
                         c.axesText(axes);
  if (value.tag.cut != 0 || axes != parameters[p].storage)
    fail("exactly-once", scatters + ", found " + describe(value) +
                             ", whose shards are cut over " +
                             c.axesText(parameters[p].storage));
  if (value.base != 0 || value.valid != logicalBytes(p, type) ||
      source.end - source.begin != gatheredBytes(p, type))
    fail("pad", scatters + ", found bytes [" + std::to_string(value.base) +
                    ", " + std::to_string(value.base + value.valid) + ") of " +
                    describe(value) + " in " + dtypeName(type) +
                    ", expected all " + std::to_string(logicalBytes(p, type)) +
                    " bytes and zeros up to " +
                    std::to_string(gatheredBytes(p, type)));
  Tag tag = value.tag;
  tag.partial &= ~axes;
  tag.cut = axes;
  writeReduced(destination, tag, destination.end - destination.begin);
}

void Interpreter::copy(const OperationInfo &info) {
  const Touch &source = info.touches[0], &destination = info.touches[1];
  if (!destination.operand->rank_strides().empty())
    return putOwnPiece(source, destination);
  if (!source.operand->rank_strides().empty())
    return slice(source, destination);
  Read value = read(source);
  View from = View::of(source), to = View::of(destination);
  if (from.pitch == 0 && to.pitch == 0 &&
      source.operand->iteration_stride() == 0) {
    std::vector<Piece> pieces =
        buffers[source.buffer()].contents.slice(from.begin, from.end);
    Tag nothing;
    write(destination, nothing);
    for (Piece &piece : pieces) {
      // Bands count rows from the start of their buffer; a copy elsewhere keeps
      // only that they are data, if all are.
      if (piece.bands) {
        piece.bands = nullptr;
        piece.tag.content = value.defined ? Content::Data : Content::Undefined;
        piece.tag.id = value.id;
        piece.tag.partial = value.partial;
      }
      piece.begin = piece.begin - from.begin + to.begin;
      piece.end = piece.end - from.begin + to.begin;
      buffers[destination.buffer()].contents.put(piece);
    }
    return;
  }
  if (value.content >= Content::Weight)
    fail("role", "copies " + describe(value) + " with a pitch or stride");
  Tag tag;
  tag.content = Content::Data;
  tag.partial = value.partial;
  tag.id = mixHash(value.id, 5);
  write(destination, tag);
}

/// A copy whose source depends on the rank: of a whole value to its shards.
void Interpreter::slice(const Touch &source, const Touch &destination) {
  Read value = read(source);
  Tag tag = value.tag;
  if (value.content < Content::Weight) {
    tag = Tag();
    tag.content = Content::Data;
    tag.partial = value.partial;
    tag.id = value.id;
    for (const pb::AxisStride &stride : source.operand->rank_strides())
      tag.id = mixHash(mixHash(tag.id, stride.axis()), stride.stride());
    return write(destination, tag);
  }
  uint32_t p = tag.parameter;
  uint64_t shard = shardBytes(p, tag.dtype);
  AxisMask axes = 0;
  bool matches = value.base == 0 && tag.cut == 0 &&
                 value.valid == logicalBytes(p, tag.dtype) &&
                 source.end - source.begin == gatheredBytes(p, tag.dtype) &&
                 destination.end - destination.begin == shard;
  for (const pb::AxisStride &stride : source.operand->rank_strides()) {
    AxisMask axis = c.maskOf(std::initializer_list<uint32_t>{stride.axis()});
    matches &= axis == 0 || stride.stride() == shard;
    axes |= axis;
  }
  if (!matches || axes != parameters[p].storage)
    fail("role", "takes a slice of " + describe(value) +
                     " that is not the rank's shard");
  tag.cut = axes;
  writeValue(destination, tag, shard);
}
