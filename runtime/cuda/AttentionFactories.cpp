//===- AttentionFactories.cpp - Bodies of attention and its gradient ------===//
//
// cuDNN computes bf16 attention where it can, the kernels of Attention.cu the
// rest. Which of them does is decided at load, and the summary of a run says
// it.
//
//===----------------------------------------------------------------------===//

#include "CudnnAttention.h"
#include "Factory.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

static StatusOr<AttentionShape> shapeOf(const Site &site, size_t query) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return attentionShape(site, query);
}

/// Fails for what Attention.cu does not take.
static Status checkOwn(const AttentionShape &s) {
  if (s.head > kMostHeadFeatures)
    return Status::error("a head has " + std::to_string(s.head) +
                         " features; the cuda backend takes up to " +
                         std::to_string(kMostHeadFeatures));
  if (s.batch * s.heads > 65535)
    return Status::error("there are " + std::to_string(s.batch * s.heads) +
                         " heads of all sequences; the cuda backend takes "
                         "65535: compile with a smaller --micro-batch");
  return Status::ok();
}

/// Why cuDNN is not asked for it; empty where it is. Operands [0, `scratch`)
/// are those that it would get.
static std::string whyNotCudnn(const Site &site, const AttentionShape &s,
                               size_t query, size_t scratch) {
  if (site.operand(query).dtype() != pb::BF16)
    return "float32";
  if (s.softcap > 0)
    return "soft-capped scores";
  if (scratch + 1 < site.count())
    return "several documents a sequence";
  if (s.head % 8 != 0 || s.head > 256)
    return "heads of " + std::to_string(s.head) + " features";
  for (size_t i = 0; i <= scratch; ++i)
    if (site.alignment(i) % 16 != 0 ||
        (site.operand(i).dtype() == pb::BF16 && site.shape(i).pitch % 8 != 0))
      return "rows that are not aligned to 16 bytes";
  return "";
}

/// cuDNN's body, or null and in `reason` why there is none.
static StatusOr<KernelBody> makeCudnn(const Site &site, const AttentionShape &s,
                                      bool gradient, std::string &reason) {
  const size_t query = gradient ? 1 : 0, scratch = gradient ? 9 : 5;
  reason = whyNotCudnn(site, s, query, scratch);
  if (!reason.empty())
    return KernelBody();
  AttentionProblem problem;
  problem.shape = s;
  problem.gradient = gradient;
  problem.fast = gradient && site.integer("fast") != 0;
  for (size_t i = 0; i < scratch; ++i)
    problem.pitches.push_back(site.shape(i).pitch);
  GTP_ASSIGN_OR_RETURN(Cudnn * cudnn, site.context.cudnn());
  GTP_ASSIGN_OR_RETURN(
      MadeAttention made,
      cudnn->attention(problem, site.shape(scratch).elements()));
  if (!made.attention) {
    reason = cudnn->name() + " refuses: " + made.refusal;
    return KernelBody();
  }
  site.context.noteAttention(
      gradient, cudnn->name() + (!gradient      ? ""
                                 : problem.fast ? ", fast: not the same bits "
                                                  "in every run"
                                                : ", deterministic"));
  return KernelBody([context = &site.context, attention = made.attention,
                     scratch](const KernelCall &call) {
    void *operands[9];
    for (size_t i = 0; i < scratch; ++i)
      operands[i] = call.as<void>(i);
    return attention->run(operands, call.as<void>(scratch),
                          context->stream(call.stream));
  });
}

/// The note of a kernel of Attention.cu.
static void noteOwn(const Site &site, bool gradient,
                    const std::string &reason) {
  site.context.noteAttention(gradient, std::string("own kernel") +
                                           (gradient ? ", deterministic" : "") +
                                           " (" + reason + ")");
}

static StatusOr<KernelBody> makeAttention(const Site &site) {
  GTP_ASSIGN_OR_RETURN(AttentionShape s, shapeOf(site, 0));
  std::string reason;
  GTP_ASSIGN_OR_RETURN(KernelBody body, makeCudnn(site, s, false, reason));
  if (body)
    return body;
  GTP_RETURN_IF_ERROR(checkOwn(s));
  noteOwn(site, false, reason);
  return KernelBody([context = &site.context, s, q = Slot(site, 0),
                     k = Slot(site, 1), v = Slot(site, 2), out = Slot(site, 3),
                     starts = Starts(site, 6)](const KernelCall &call) {
    GTP_CUDA(attention(s, q.in(call), k.in(call), v.in(call), out.in(call),
                       call.f32(4), starts.in(call),
                       context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeAttentionGrad(const Site &site) {
  GTP_ASSIGN_OR_RETURN(AttentionShape s, shapeOf(site, 1));
  std::string reason;
  GTP_ASSIGN_OR_RETURN(KernelBody body, makeCudnn(site, s, true, reason));
  if (body)
    return body;
  GTP_RETURN_IF_ERROR(checkOwn(s));
  noteOwn(site, true, reason);
  site.context.needWorkspace(s.batch * s.heads * s.length * sizeof(float));
  return KernelBody([context = &site.context, s, dout = Slot(site, 0),
                     q = Slot(site, 1), k = Slot(site, 2), v = Slot(site, 3),
                     out = Slot(site, 4), dq = Slot(site, 6),
                     dk = Slot(site, 7), dv = Slot(site, 8),
                     starts = Starts(site, 10)](const KernelCall &call) {
    GTP_CUDA(attentionGrad(
        s, dout.in(call), q.in(call), k.in(call), v.in(call), out.in(call),
        call.f32(5), dq.in(call), dk.in(call), dv.in(call), starts.in(call),
        static_cast<float *>(context->workspace(call.stream)),
        context->stream(call.stream)));
    return Status::ok();
  });
}

const std::vector<FactoryEntry> &gtp::rt::cuda::attentionFactories() {
  static const std::vector<FactoryEntry> table = {
      {"attention", makeAttention},
      {"attention_grad", makeAttentionGrad},
  };
  return table;
}
