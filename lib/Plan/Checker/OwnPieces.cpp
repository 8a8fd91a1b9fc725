//===- OwnPieces.cpp - Gathers that find the rank's shard in place --------===//
//
// A copy puts what the rank has itself where a gather will want it, at an
// address that depends on the rank; the gather brings the pieces of the others
// around it. In between, the bytes of all pieces are one abstract value that
// nothing but that gather can read.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "Structure.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

/// Bytes a coordinate, of axes of more than one rank.
static std::map<uint32_t, uint64_t> stridesOf(const pb::Mesh &mesh,
                                              const pb::Operand &operand) {
  std::map<uint32_t, uint64_t> strides;
  for (const pb::AxisStride &stride : operand.rank_strides())
    if (mesh.axes(static_cast<int>(stride.axis())).degree() > 1)
      strides[stride.axis()] = stride.stride();
  return strides;
}

Status check::checkInPlace(const pb::Plan &plan,
                           const pb::Communicator &communicator,
                           const pb::Operand &source,
                           const pb::Operand &destination) {
  uint64_t bytes = *byteExtent(source), stride = bytes;
  std::map<uint32_t, uint64_t> expected;
  for (int i = communicator.axes_size(); i-- > 0;) {
    uint64_t degree =
        plan.mesh().axes(static_cast<int>(communicator.axes(i))).degree();
    if (degree == 1)
      continue;
    // The destination's size, which fits its buffer, bounds the product.
    expected[communicator.axes(i)] = stride;
    stride *= degree;
  }
  if (source.buffer() == destination.buffer() &&
      source.offset() == destination.offset() &&
      source.iteration_stride() == 0 &&
      stridesOf(plan.mesh(), source) == expected)
    return Status::ok();
  std::string strides;
  for (auto [axis, bytesOfAxis] : expected)
    strides += (strides.empty() ? "" : ", ") + std::to_string(bytesOfAxis) +
               " bytes a coordinate of " +
               plan.mesh().axes(static_cast<int>(axis)).name();
  return Status::error("source " + describe(source) +
                       " depends on the rank and is not the rank's own piece "
                       "of destination " +
                       describe(destination) +
                       ", which begins where that does and moves by " +
                       strides);
}

void Interpreter::putOwnPiece(const Touch &source, const Touch &destination) {
  OwnPiece piece{destination.operand, read(source)};
  // What a piece is of is asked where it is gathered.
  Tag tag;
  tag.content = Content::OwnPiece;
  tag.id = ownPieces.size();
  ownPieces.push_back(std::move(piece));
  write(destination, tag);
}

const Interpreter::OwnPiece *
Interpreter::findOwnPiece(const Touch &source) const {
  const BufferState &state = buffers[source.buffer()];
  if (!state.held)
    return nullptr;
  std::vector<Piece> found = state.contents.slice(source.begin, source.end);
  if (found.size() != 1 || found[0].bands || found[0].base != 0 ||
      found[0].tag.content != Content::OwnPiece)
    return nullptr;
  const OwnPiece &piece = ownPieces[found[0].tag.id];
  const pb::Operand &put = *piece.destination;
  bool isThere = put.offset() == source.operand->offset() &&
                 byteExtent(put) == byteExtent(*source.operand) &&
                 stridesOf(c.plan.mesh(), put) ==
                     stridesOf(c.plan.mesh(), *source.operand);
  return isThere ? &piece : nullptr;
}

Read Interpreter::takeOwnPiece(const Touch &source) {
  if (!c.spend(buffers[source.buffer()].contents.pieceCount()))
    return Read();
  if (const OwnPiece *piece = findOwnPiece(source))
    return piece->value;
  fail("undefined-read",
       "gathers in place, and " + c.bufferText(source.buffer()) +
           " does not hold the rank's own piece of bytes [" +
           std::to_string(source.begin) + ", " + std::to_string(source.end) +
           "): a copy must put it there before");
  // Say it once, not for every operation that depends on it.
  Read data;
  data.content = Content::Data;
  return data;
}
