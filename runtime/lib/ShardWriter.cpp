//===- ShardWriter.cpp - What a rank's buffers of a parameter start with --===//

#include "ShardWriter.h"
#include "NumberFormat.h"
#include "Parallel.h"
#include "Shard.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;
namespace pb = gtp::plan::pb;

/// Elements that a thread takes at a time.
static constexpr uint64_t kPiece = uint64_t(1) << 16;
/// Elements that are written at a time.
static constexpr uint64_t kChunk = uint64_t(1) << 24;

static uint64_t rowElements(const pb::Parameter &parameter) {
  uint64_t elements = 1;
  for (int i = 1; i < parameter.shape_size(); ++i)
    elements *= parameter.shape(i);
  return elements;
}

/// Writes the shard as convert(value, to) puts each of its elements.
template <typename Convert>
Status ShardWriter::writeBuffer(uint64_t rank, uint32_t buffer,
                                uint64_t elementBytes, const Convert &convert) {
  for (uint64_t begin = 0; begin < shard.size(); begin += kChunk) {
    const uint64_t count = std::min<uint64_t>(kChunk, shard.size() - begin);
    bytes.resize(std::max(bytes.size(), count * elementBytes));
    inParallel(count, kPiece, [&](uint64_t first, uint64_t end) {
      for (uint64_t i = first; i < end; ++i)
        convert(shard[begin + i], &bytes[i * elementBytes]);
    });
    GTP_RETURN_IF_ERROR(backend.writeBuffer(rank, buffer, begin * elementBytes,
                                            bytes.data(),
                                            count * elementBytes));
  }
  return Status::ok();
}

Status ShardWriter::writeShard(const pb::Parameter &parameter, uint64_t rank) {
  const bool isApart = parameter.master_buffer_plus1() != 0;
  const bool isSplit = parameter.remainder_buffer_plus1() != 0;
  const pb::DType compute = plan.computeType(), master = plan.masterType();
  // The copy of a master that is apart is rounded as update kernels round it.
  const bool isPublished = (isApart || isSplit) && compute == pb::BF16;
  GTP_RETURN_IF_ERROR(
      writeBuffer(rank, parameter.compute_buffer(), plan::dtypeSize(compute),
                  [&](float value, uint8_t *to) {
                    encode(isPublished ? float(SplitFloat(value).high) : value,
                           compute, to);
                  }));
  if (isApart)
    GTP_RETURN_IF_ERROR(writeBuffer(
        rank, parameter.master_buffer_plus1() - 1, plan::dtypeSize(master),
        [&](float value, uint8_t *to) { encode(value, master, to); }));
  if (isSplit)
    GTP_RETURN_IF_ERROR(writeBuffer(rank,
                                    parameter.remainder_buffer_plus1() - 1, 2,
                                    [](float value, uint8_t *to) {
                                      int16_t low = SplitFloat(value).low;
                                      std::memcpy(to, &low, sizeof low);
                                    }));
  const uint64_t stateBytes = shard.size() * plan::dtypeSize(master);
  bytes.assign(std::min(stateBytes, kChunk), 0);
  for (uint32_t state : parameter.state_buffers())
    for (uint64_t at = 0; at < stateBytes; at += bytes.size())
      GTP_RETURN_IF_ERROR(
          backend.writeBuffer(rank, state, at, bytes.data(),
                              std::min(stateBytes - at, bytes.size())));
  return Status::ok();
}

/// Fills `shard`.
void ShardWriter::cut(const pb::Parameter &parameter, uint64_t rank) {
  const Shard cutting(plan.proto().mesh(),
                      plan.proto().layouts(int(parameter.layout())), rank);
  uint64_t covered = 0;
  std::vector<Shard::Stretch> pieces;
  for (Shard::Stretch stretch : cutting.stretches()) {
    covered += stretch.size;
    for (; stretch.size > kPiece; stretch.size -= kPiece) {
      pieces.push_back({stretch.local, stretch.logical, kPiece});
      stretch.local += kPiece;
      stretch.logical += kPiece;
    }
    pieces.push_back(stretch);
  }
  shard.resize(cutting.elements());
  if (covered != shard.size())
    std::fill(shard.begin(), shard.end(), 0.0f);
  inParallel(pieces.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const Shard::Stretch &piece = pieces[i];
      if (weights.readsParts(parameter))
        weights.readPart(parameter, piece.logical, piece.size,
                         shard.data() + piece.local);
      else
        std::copy_n(logical.begin() + int64_t(piece.logical), piece.size,
                    shard.begin() + int64_t(piece.local));
    }
  });
}

Status ShardWriter::write(const pb::Parameter &parameter) {
  if (!weights.readsParts(parameter)) {
    logical.resize(parameter.shape(0) * rowElements(parameter));
    uint64_t at = 0;
    for (int i = 0; i < parameter.tensors_size(); ++i) {
      weights.read(parameter, i, logical.data() + at);
      at += parameter.tensors(i).rows() * rowElements(parameter);
    }
  }
  const uint64_t end = backend.firstRank() + backend.localRanks();
  for (uint64_t rank = backend.firstRank(); rank < end; ++rank) {
    cut(parameter, rank);
    GTP_RETURN_IF_ERROR(writeShard(parameter, rank));
  }
  return Status::ok();
}
