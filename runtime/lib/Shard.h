//===- Shard.h - A rank's piece of a logical tensor -----------------------===//

#ifndef GTP_RT_LIB_SHARD_H
#define GTP_RT_LIB_SHARD_H

#include "gtp/Plan/Layout.h"

#include <vector>

namespace gtp::rt {

/// How one rank's shard of a value lies in the logical value, both dense.
class Shard {
public:
  Shard(const plan::pb::Mesh &mesh, const plan::pb::Layout &layout,
        uint64_t rank);

  /// Pads included.
  uint64_t elements() const;
  /// Elements that lie dense in both, in the order of the shard; pads are in
  /// none.
  struct Stretch {
    uint64_t local, logical, size;
  };
  std::vector<Stretch> stretches() const;
  /// Puts the shard where it belongs in `logical`; pads go nowhere.
  void place(const std::vector<float> &shard,
             std::vector<float> &logical) const;
  /// Whether no other rank with smaller coordinates holds the same elements.
  bool isFirstReplica() const { return firstReplica; }

private:
  struct Dim {
    uint64_t shardSize, logicalSize;
    std::vector<plan::ShardRun> runs;
  };
  /// Calls visit(local, logical, size) for each stretch that lies dense in
  /// both.
  template <typename Visit>
  void forEach(size_t dim, uint64_t local, uint64_t logical,
               const Visit &visit) const;

  std::vector<Dim> dims;
  bool firstReplica;
};

} // namespace gtp::rt

#endif // GTP_RT_LIB_SHARD_H
