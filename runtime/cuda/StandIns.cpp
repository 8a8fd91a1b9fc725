//===- StandIns.cpp - Results of collectives, for steps without them ------===//

#include "StandIns.h"
#include "Check.h"

#include "gtp/Support/RoundUp.h"

#include <utility>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

/// A smaller buffer may be any scalar, which no other stands for.
static constexpr uint64_t kLarge = 65536;

StatusOr<std::unique_ptr<StandIns>>
StandIns::create(const pb::Plan &plan, const Code &code, int device) {
  auto made = std::make_unique<StandIns>();
  std::map<std::pair<pb::Collective::Kind, uint64_t>, uint64_t> shared;
  uint64_t end = 0;
  for (const Region &region : code.programs[0].regions)
    for (const Operation &operation : region.operations) {
      if (!operation.isCollective())
        continue;
      const size_t members = operation.collective.counts.size();
      for (size_t i = members; i < 2 * members; ++i) {
        const uint32_t buffer = operation.places[i].buffer;
        if (plan.buffers(int(buffer)).kind() != pb::Buffer::TRANSIENT ||
            made->offsets.count(buffer))
          continue;
        const uint64_t bytes = code.buffers[buffer].bytes;
        auto [entry, isNew] =
            shared.try_emplace({operation.collective.kind, bytes}, end);
        const bool isOwn = isNew || bytes < kLarge;
        made->offsets[buffer] = isOwn ? end : entry->second;
        if (isOwn)
          end += roundUp(bytes, 256);
      }
    }
  if (end == 0)
    return made;
  auto memory = DeviceMemory::allocate(device, end);
  if (!memory.isOk())
    return std::move(memory).status().in(
        "copies of what collectives have written");
  made->memory = std::move(*memory);
  GTP_CUDA(cudaMemset(made->memory->base(), 0, made->memory->size()));
  return made;
}

Status StandIns::keep(const Operation &operation, const Code &code,
                      const std::byte *arena, cudaStream_t stream) const {
  const size_t members = operation.collective.counts.size();
  for (size_t i = members; i < 2 * members; ++i) {
    const uint32_t buffer = operation.places[i].buffer;
    auto found = offsets.find(buffer);
    if (found == offsets.end())
      continue;
    const Code::Buffer &from = code.buffers[buffer];
    GTP_CUDA(cudaMemcpyAsync(memory->base() + found->second,
                             arena + from.offset, from.bytes,
                             cudaMemcpyDeviceToDevice, stream));
  }
  return Status::ok();
}

std::byte *StandIns::find(const Place &place, const Code &code) const {
  auto found = offsets.find(place.buffer);
  if (found == offsets.end())
    return nullptr;
  return memory->base() + found->second + place.offset -
         code.buffers[place.buffer].offset;
}
