//===- UpdateFactories.cpp - Bodies of loss, clipping and updates ---------===//

#include "Factory.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

/// Rows of a sequence whose mean counts, if `attribute` asks for that, else 0.
static uint64_t sequenceRows(const Site &site, const char *attribute,
                             size_t labels) {
  return site.integer(attribute) ? site.shape(labels).columns : 0;
}

static StatusOr<KernelBody> makeCrossEntropy(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  site.context.needWorkspace(site.shape(0).rows * sizeof(float));
  return KernelBody([context = &site.context, logits = Slot(site, 0),
                     loss = Slot(site, 3),
                     sequence = sequenceRows(site, "sequence_mean", 1)](
                        const KernelCall &call) {
    GTP_CUDA(crossEntropy(
        logits.in(call), {call.as<int32_t>(1), call.as<int64_t>(2), sequence},
        loss.in(call), static_cast<float *>(context->workspace(call.stream)),
        context->fault(), context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeCrossEntropyGrad(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody(
      [context = &site.context, logits = Slot(site, 0), out = Slot(site, 4),
       sequence =
           sequenceRows(site, "sequence_mean", 1)](const KernelCall &call) {
        GTP_CUDA(crossEntropyGrad(
            logits.in(call),
            {call.as<int32_t>(1), call.as<int64_t>(2), sequence}, call.f32(3),
            out.in(call), context->fault(), context->stream(call.stream)));
        return Status::ok();
      });
}

static StatusOr<KernelBody> makeCrossEntropyInPlace(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  site.context.needWorkspace(site.shape(0).rows * sizeof(float));
  return KernelBody([context = &site.context, logits = Slot(site, 0),
                     loss = Slot(site, 4),
                     sequence = sequenceRows(site, "sequence_mean", 1)](
                        const KernelCall &call) {
    GTP_CUDA(crossEntropyInPlace(
        logits.in(call), {call.as<int32_t>(1), call.as<int64_t>(2), sequence},
        call.f32(3), loss.in(call),
        static_cast<float *>(context->workspace(call.stream)), context->fault(),
        context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeCountLabels(const Site &site) {
  return KernelBody([context = &site.context, count = site.shape(0).elements(),
                     sequence = sequenceRows(site, "sequences", 0)](
                        const KernelCall &call) {
    GTP_CUDA(countLabels(call.as<int32_t>(0), count, sequence,
                         call.as<int64_t>(1), context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeSumSquares(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow(0));
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

namespace {
/// Where the operands of an update are; those that a call lacks are at 0.
struct UpdateSlots {
  Context *context;
  size_t remainder, m, v, grad, hyper, scale, compute;
  Slot masterSlot, gradSlot, computeSlot;
  bool decays;

  UpdateSlots(const Site &site, bool split, bool moments)
      : context(&site.context), remainder(split), m(moments ? 1 + split : 0),
        v(moments ? 2 + split : 0), grad((moments ? 3 : 1) + split),
        hyper(grad + 1), scale(grad + 2),
        compute(site.count() > grad + 3 ? grad + 3 : 0), masterSlot(site, 0),
        gradSlot(site, grad), computeSlot(site, compute),
        decays(site.integer("decay") != 0) {}

  Update in(const KernelCall &call) const {
    Update update;
    update.master = masterSlot.in(call);
    update.remainder = remainder ? call.as<int16_t>(remainder) : nullptr;
    update.m = m ? call.as<void>(m) : nullptr;
    update.v = v ? call.as<void>(v) : nullptr;
    update.grad = gradSlot.in(call);
    update.hyper = call.f32(hyper);
    update.scale = call.f32(scale);
    update.decays = decays;
    update.compute = computeSlot.in(call);
    if (!compute)
      update.compute.data = nullptr;
    return update;
  }
};
} // namespace

template <bool split>
static StatusOr<KernelBody> makeAdamw(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody(
      [slots = UpdateSlots(site, split, true)](const KernelCall &call) {
        GTP_CUDA(adamw(slots.in(call), slots.context->stream(call.stream)));
        return Status::ok();
      });
}

template <bool split>
static StatusOr<KernelBody> makeSgd(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody(
      [slots = UpdateSlots(site, split, false)](const KernelCall &call) {
        GTP_CUDA(sgd(slots.in(call), slots.context->stream(call.stream)));
        return Status::ok();
      });
}

const std::vector<FactoryEntry> &gtp::rt::cuda::updateFactories() {
  static const std::vector<FactoryEntry> table = {
      {"adamw", makeAdamw<false>},
      {"adamw_split", makeAdamw<true>},
      {"clip_scale", makeClipScale},
      {"count_labels", makeCountLabels},
      {"cross_entropy", makeCrossEntropy},
      {"cross_entropy_grad", makeCrossEntropyGrad},
      {"cross_entropy_in_place", makeCrossEntropyInPlace},
      {"sgd", makeSgd<false>},
      {"sgd_split", makeSgd<true>},
      {"sum_squares", makeSumSquares},
  };
  return table;
}
