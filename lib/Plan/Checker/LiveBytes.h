//===- LiveBytes.h - The most bytes live at once, exactly -------*- C++ -*-===//

#ifndef GTP_LIB_PLAN_CHECKER_LIVEBYTES_H
#define GTP_LIB_PLAN_CHECKER_LIVEBYTES_H

#include "Context.h"

namespace gtp::plan::check {

/// Bytes that a buffer takes of its memory.
uint64_t roundedSize(const pb::Buffer &buffer);

/// Bytes of memory 0 that some execution allowed by happens-before has live at
/// once, at most.
struct LivePeaks {
  uint64_t all = 0;
  uint64_t gathered = 0; ///< in destinations of gathers of parameters
};

LivePeaks findLivePeaks(Context &context);

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_LIVEBYTES_H
