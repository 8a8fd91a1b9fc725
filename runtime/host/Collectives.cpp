//===- Collectives.cpp - Collectives between threads of one process -------===//

#include "Collectives.h"
#include "RaceAnnotations.h"
#include "gtp/Support/BFloat16.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;
namespace pb = gtp::plan::pb;
using pb::Collective;

/// The sums of each member start on a line of their own.
static constexpr uint64_t kCacheLine = 64;

uint64_t gtp::rt::host::scratchBytes(const CollectiveSpec &spec) {
  uint64_t bytes = 0;
  if (spec.kind == Collective::ALL_REDUCE)
    for (uint64_t count : spec.counts)
      bytes += roundUp(count * plan::dtypeSize(spec.type), kCacheLine);
  return bytes;
}

CollectiveGroup::CollectiveGroup(uint32_t size, size_t mostMembers,
                                 uint64_t scratchBytes)
    : size(size), slots(size), scratch(scratchBytes), arrival(size),
      departure(size) {
  for (Slot &slot : slots)
    slot.sources.resize(mostMembers);
}

Status CollectiveGroup::checkPeers(uint64_t identity, uint32_t me) const {
  for (uint32_t peer = 0; peer < size; ++peer)
    if (slots[peer].identity != identity)
      return Status::error(
          "the ranks of its communicator run different collectives: member " +
          std::to_string(me) + " of the group is at operation " +
          std::to_string(static_cast<uint32_t>(identity)) + ", member " +
          std::to_string(peer) + " at operation " +
          std::to_string(static_cast<uint32_t>(slots[peer].identity)));
  return Status::ok();
}

void CollectiveGroup::gather(const CollectiveSpec &spec, size_t member,
                             std::byte *out) const {
  uint64_t bytes = spec.counts[member] * plan::dtypeSize(spec.type);
  for (const Slot &slot : slots) {
    const std::byte *in = slot.sources[member];
    // In place, the own piece is where it belongs.
    if (in != out) {
      annotateBytes(in, bytes, false);
      annotateBytes(out, bytes, true);
      std::memcpy(out, in, bytes);
    }
    out += bytes;
  }
}

/// out = (add ? out : 0) + the reduction of element i of all `sources`, what
/// is sent and the result both rounded to `Wire`.
template <typename T, typename Wire, typename Sum, typename Source>
static void reduceElements(uint32_t ranks, Source source, bool maximum,
                           uint64_t count, T *out, bool add) {
  constexpr uint64_t kBlock = 256;
  Sum sums[kBlock];
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t length = std::min(kBlock, count - begin);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const T *in = source(rank) + begin;
      if (rank == 0)
        for (uint64_t i = 0; i < length; ++i)
          sums[i] = static_cast<Wire>(in[i]);
      else if (maximum)
        for (uint64_t i = 0; i < length; ++i)
          sums[i] = std::max<Sum>(sums[i], static_cast<Wire>(in[i]));
      else
        for (uint64_t i = 0; i < length; ++i)
          sums[i] += static_cast<Wire>(in[i]);
    }
    // In place, this piece of the own source is read by nobody else.
    for (uint64_t i = 0; i < length; ++i) {
      auto sum = static_cast<T>(static_cast<Wire>(sums[i]));
      out[begin + i] = add ? static_cast<T>(out[begin + i] + sum) : sum;
    }
  }
}

void CollectiveGroup::reduce(const CollectiveSpec &spec, size_t member,
                             uint64_t first, uint64_t count, std::byte *out,
                             bool add) const {
  auto run = [&](auto element, auto wire, auto sum) {
    using T = decltype(element);
    auto source = [&](uint32_t rank) {
      return reinterpret_cast<const T *>(slots[rank].sources[member]) + first;
    };
    for (uint32_t rank = 0; rank < size; ++rank)
      annotateBytes(source(rank), count * sizeof(T), false);
    annotateBytes(out, count * sizeof(T), true);
    reduceElements<T, decltype(wire), decltype(sum)>(
        size, source, spec.reduce == Collective::MAX, count,
        reinterpret_cast<T *>(out), add);
  };
  auto runWire = [&](auto element, auto wire) {
    if (spec.accumulation == pb::F64)
      run(element, wire, double());
    else
      run(element, wire, float());
  };
  auto runFloat = [&](auto element) {
    if (spec.wire == pb::BF16)
      runWire(element, BFloat16());
    else
      runWire(element, float());
  };
  if (spec.type == pb::I64)
    run(int64_t(), int64_t(), int64_t());
  else if (spec.type == pb::F64)
    run(double(), double(), double());
  else if (spec.type == pb::BF16)
    runFloat(BFloat16());
  else
    runFloat(float());
}

/// Moves a result out of the group's scratch.
static void deliver(pb::DType type, const std::byte *from, uint64_t count,
                    const Argument &to) {
  uint64_t bytes = count * plan::dtypeSize(type);
  annotateBytes(to.data, bytes, true);
  auto addAll = [&](auto zero) {
    using T = decltype(zero);
    auto *sums = reinterpret_cast<T *>(to.data);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] = static_cast<T>(sums[i] + reinterpret_cast<const T *>(from)[i]);
  };
  if (!to.add)
    std::memcpy(to.data, from, bytes);
  else if (type == pb::F32)
    addAll(float());
  else if (type == pb::BF16)
    addAll(BFloat16());
  else if (type == pb::F64)
    addAll(double());
  else
    addAll(int64_t());
}

/// Source and destination of a member may overlap only where they are the same
/// place for every byte.
static Status checkOverlap(const CollectiveSpec &spec, size_t member,
                           uint32_t size, uint32_t me, const std::byte *source,
                           const std::byte *destination) {
  uint64_t in = spec.counts[member] * plan::dtypeSize(spec.type), out = in;
  if (spec.kind == Collective::ALL_GATHER)
    out = in * size;
  else if (spec.kind == Collective::REDUCE_SCATTER)
    out = in / size;
  auto a = reinterpret_cast<uintptr_t>(source);
  auto b = reinterpret_cast<uintptr_t>(destination);
  if (a + in <= b || b + out <= a ||
      a + (spec.kind == Collective::REDUCE_SCATTER ? me * out : 0) ==
          b + (spec.kind == Collective::ALL_GATHER ? me * in : 0))
    return Status::ok();
  return Status::error("source and destination of member " +
                       std::to_string(member) +
                       " overlap and are not the same place");
}

static Status endedInside() {
  return Status::error("the run was ended in a collective");
}

Status CollectiveGroup::run(const CollectiveSpec &spec, uint64_t identity,
                            uint32_t me, const Argument *sources,
                            const Argument *destinations,
                            const std::atomic<bool> &ended) {
  Slot &mine = slots[me];
  if (mine.busy.exchange(true, std::memory_order_relaxed))
    return Status::error("the rank is in two collectives of one communicator "
                         "at once");
  mine.identity = identity;
  for (size_t i = 0; i < spec.counts.size(); ++i) {
    GTP_RETURN_IF_ERROR(
        checkOverlap(spec, i, size, me, sources[i].data, destinations[i].data));
    mine.sources[i] = sources[i].data;
  }
  if (!arrival.arrive(ended))
    return endedInside();
  GTP_RETURN_IF_ERROR(checkPeers(identity, me));

  uint64_t elementBytes = plan::dtypeSize(spec.type);
  std::byte *shared = scratch.data();
  for (size_t i = 0; i < spec.counts.size(); ++i) {
    uint64_t count = spec.counts[i];
    switch (spec.kind) {
    case Collective::ALL_GATHER:
      gather(spec, i, destinations[i].data);
      break;
    case Collective::REDUCE_SCATTER:
      reduce(spec, i, count / size * me, count / size, destinations[i].data,
             destinations[i].add);
      break;
    default: {
      // Everybody reduces a piece for all.
      uint64_t begin = count * me / size, end = count * (me + 1) / size;
      reduce(spec, i, begin, end - begin, shared + begin * elementBytes, false);
      shared += roundUp(count * elementBytes, kCacheLine);
      break;
    }
    }
  }
  // Nobody reads a source after this.
  if (!departure.arrive(ended))
    return endedInside();
  if (spec.kind == Collective::ALL_REDUCE) {
    shared = scratch.data();
    for (size_t i = 0; i < spec.counts.size(); ++i) {
      deliver(spec.type, shared, spec.counts[i], destinations[i]);
      shared += roundUp(spec.counts[i] * elementBytes, kCacheLine);
    }
  }
  mine.busy.store(false, std::memory_order_relaxed);
  return Status::ok();
}
