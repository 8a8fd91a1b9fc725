//===- Ranks.cpp - The groups that a communicator makes -------------------===//

#include "Ranks.h"

#include "gtp/Plan/Layout.h"

using namespace gtp::plan;
using namespace gtp::rt;

Groups gtp::rt::groupsOf(const pb::Mesh &mesh,
                         const pb::Communicator &communicator) {
  Groups groups;
  uint64_t ranks = rankCount(mesh);
  groups.size = static_cast<uint32_t>(groupSize(mesh, communicator));
  groups.group.resize(ranks);
  groups.position.resize(ranks);
  std::vector<bool> placed(ranks);
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    if (placed[rank])
      continue;
    uint32_t position = 0;
    for (uint64_t member : groupOf(mesh, communicator, rank)) {
      placed[member] = true;
      groups.group[member] = groups.count;
      groups.position[member] = position++;
    }
    ++groups.count;
  }
  return groups;
}
