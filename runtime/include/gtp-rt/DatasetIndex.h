//===- DatasetIndex.h - The index of a Megatron-LM dataset ----------------===//
//
// An indexed dataset is two files: PREFIX.bin holds the ids of all sequences
// one after the other, PREFIX.idx says how wide ids are and where sequences and
// documents end.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_DATASETINDEX_H
#define GTP_RT_DATASETINDEX_H

#include "gtp/Support/Status.h"

#include <cstdint>

namespace gtp::rt {

/// What an index of version 1 says, every entry of it checked: the sequences
/// lie one after the other from the start of the .bin file, and each document
/// is a range of them.
struct DatasetIndex {
  unsigned tokenBytes = 0;
  bool isSigned = false;
  uint64_t sequences = 0;
  uint64_t documents = 0;
  uint64_t tokens = 0; ///< of all sequences

  static StatusOr<DatasetIndex> parse(const uint8_t *bytes, uint64_t size);
};

} // namespace gtp::rt

#endif // GTP_RT_DATASETINDEX_H
