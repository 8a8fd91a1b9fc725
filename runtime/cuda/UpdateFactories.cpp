//===- UpdateFactories.cpp - Bodies of loss, clipping and updates ---------===//

#include "Factory.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

/// Fails when the attribute asks for means over sequences.
static Status needTokenMean(const Site &site, const char *attribute) {
  if (site.integer(attribute) == 0)
    return Status::ok();
  return Status::error(
      "the cuda backend has the mean over tokens only; compile "
      "with --loss=token-mean, or run with --backend=host");
}

static StatusOr<KernelBody> makeCrossEntropy(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  GTP_RETURN_IF_ERROR(needTokenMean(site, "sequence_mean"));
  GTP_RETURN_IF_ERROR(site.needCount(4));
  site.context.needWorkspace(site.shape(0).rows * sizeof(float));
  return KernelBody([context = &site.context, logits = Slot(site, 0),
                     loss = Slot(site, 3)](const KernelCall &call) {
    GTP_CUDA(crossEntropy(logits.in(call), call.as<int32_t>(1),
                          call.as<int64_t>(2), loss.in(call),
                          static_cast<float *>(context->workspace(call.stream)),
                          context->fault(), context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeCrossEntropyGrad(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  GTP_RETURN_IF_ERROR(needTokenMean(site, "sequence_mean"));
  GTP_RETURN_IF_ERROR(site.needCount(5));
  return KernelBody([context = &site.context, logits = Slot(site, 0),
                     out = Slot(site, 4)](const KernelCall &call) {
    GTP_CUDA(crossEntropyGrad(logits.in(call), call.as<int32_t>(1),
                              call.as<int64_t>(2), call.f32(3), out.in(call),
                              context->fault(), context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeCountLabels(const Site &site) {
  GTP_RETURN_IF_ERROR(needTokenMean(site, "sequences"));
  return KernelBody([context = &site.context,
                     count = site.shape(0).elements()](const KernelCall &call) {
    GTP_CUDA(countLabels(call.as<int32_t>(0), count, call.as<int64_t>(1),
                         context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeSumSquares(const Site &site) {
  if (site.operand(0).dtype() != plan::pb::F32)
    return Status::error("operand " + site.text(0) +
                         " is not float32, which is all that the cuda backend "
                         "computes in");
  site.context.needWorkspace(kSumSquaresBlocks * sizeof(double));
  return KernelBody([context = &site.context,
                     x = Slot(site, 0)](const KernelCall &call) {
    GTP_CUDA(sumSquares(x.in(call), call.as<double>(1),
                        static_cast<double *>(context->workspace(call.stream)),
                        context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeClipScale(const Site &site) {
  return KernelBody([context = &site.context,
                     most = static_cast<float>(site.real("max_norm"))](
                        const KernelCall &call) {
    GTP_CUDA(clipScale(call.as<double>(0), call.f32(1), call.f32(2), most,
                       context->stream(call.stream)));
    return Status::ok();
  });
}

/// The optional last operand, without data when the call has none.
static Tensor published(const Site &site, size_t index) {
  return site.count() > index ? site.tensor(index) : Tensor();
}

static StatusOr<KernelBody> makeAdamw(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody(
      [context = &site.context, master = Slot(site, 0), grad = Slot(site, 3),
       compute = published(site, 6), publishes = site.count() > 6,
       decays = site.integer("decay") != 0](const KernelCall &call) {
        Tensor to = compute;
        to.data = publishes ? call.as<void>(6) : nullptr;
        GTP_CUDA(adamw(master.in(call), call.f32(1), call.f32(2), grad.in(call),
                       call.f32(4), call.f32(5), decays, to,
                       context->stream(call.stream)));
        return Status::ok();
      });
}

static StatusOr<KernelBody> makeSgd(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody(
      [context = &site.context, master = Slot(site, 0), grad = Slot(site, 1),
       compute = published(site, 4), publishes = site.count() > 4,
       decays = site.integer("decay") != 0](const KernelCall &call) {
        Tensor to = compute;
        to.data = publishes ? call.as<void>(4) : nullptr;
        GTP_CUDA(sgd(master.in(call), grad.in(call), call.f32(2), call.f32(3),
                     decays, to, context->stream(call.stream)));
        return Status::ok();
      });
}

const std::vector<FactoryEntry> &gtp::rt::cuda::updateFactories() {
  static const std::vector<FactoryEntry> table = {
      {"adamw", makeAdamw},
      {"clip_scale", makeClipScale},
      {"count_labels", makeCountLabels},
      {"cross_entropy", makeCrossEntropy},
      {"cross_entropy_grad", makeCrossEntropyGrad},
      {"sgd", makeSgd},
      {"sum_squares", makeSumSquares},
  };
  return table;
}
