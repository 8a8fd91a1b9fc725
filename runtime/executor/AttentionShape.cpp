//===- AttentionShape.cpp - What the attention kernels' calls say ---------===//

#include "AttentionShape.h"

#include "CallSite.h"

using namespace gtp::rt;

AttentionShape gtp::rt::attentionShape(const CallSite &site, size_t query) {
  AttentionShape s;
  s.batch = site.dim(query, 0);
  s.length = site.dim(query, 1);
  s.heads = static_cast<uint64_t>(site.integer("heads"));
  s.kvHeads = static_cast<uint64_t>(site.integer("kv_heads"));
  s.head = site.shape(query).columns / s.heads;
  s.scale = static_cast<float>(site.real("scale"));
  s.causal = site.integer("causal") != 0;
  s.window = static_cast<uint64_t>(site.integer("window"));
  s.softcap = static_cast<float>(site.real("softcap"));
  return s;
}
