//===- AttentionShape.h - What the attention kernels' calls say -----------===//

#ifndef GTP_RUNTIME_EXECUTOR_ATTENTIONSHAPE_H
#define GTP_RUNTIME_EXECUTOR_ATTENTIONSHAPE_H

#include <cstddef>
#include <cstdint>

namespace gtp::rt {

class CallSite;

/// Of a call of `attention` or `attention_grad`, as the registry says.
struct AttentionShape {
  uint64_t batch, length, heads, kvHeads, head;
  float scale;
  bool causal;
  uint64_t window; ///< 0: none
  float softcap;   ///< 0: none
};

/// `query` is the index of the operand q.
AttentionShape attentionShape(const CallSite &site, size_t query);

} // namespace gtp::rt

#endif // GTP_RUNTIME_EXECUTOR_ATTENTIONSHAPE_H
