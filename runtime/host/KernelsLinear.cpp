//===- KernelsLinear.cpp - linear and its gradients -----------------------===//

#include "Blas.h"
#include "Kernel.h"

using namespace gtp;
using namespace gtp::rt::host;

static Status needMatrices(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return site.needBlasSizes();
}

static StatusOr<KernelBody> linear(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(needMatrices(site));
  return KernelBody([x = site.shape(0), w = site.shape(1),
                     y = site.shape(2)](const KernelCall &call) {
    multiply(y.rows, y.columns, x.columns, 1, {call.f32(0), x.pitch},
             {call.f32(1), w.pitch, true}, false, call.f32(2), y.pitch);
    return Status::ok();
  });
}

static StatusOr<KernelBody> linearBias(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(needMatrices(site));
  return KernelBody([x = site.shape(0), w = site.shape(1),
                     y = site.shape(3)](const KernelCall &call) {
    multiply(y.rows, y.columns, x.columns, 1, {call.f32(0), x.pitch},
             {call.f32(1), w.pitch, true}, false, call.f32(3), y.pitch);
    const float *bias = call.f32(2);
    for (uint64_t row = 0; row < y.rows; ++row)
      for (uint64_t i = 0; i < y.columns; ++i)
        call.f32(3)[row * y.pitch + i] += bias[i];
    return Status::ok();
  });
}

static StatusOr<KernelBody> linearDgrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(needMatrices(site));
  return KernelBody([dy = site.shape(0), w = site.shape(1),
                     dx = site.shape(2)](const KernelCall &call) {
    multiply(dx.rows, dx.columns, dy.columns, 1, {call.f32(0), dy.pitch},
             {call.f32(1), w.pitch}, false, call.f32(2), dx.pitch);
    return Status::ok();
  });
}

static StatusOr<KernelBody> linearWgrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(needMatrices(site));
  return KernelBody([dy = site.shape(0), x = site.shape(1),
                     dw = site.shape(2)](const KernelCall &call) {
    multiply(dw.rows, dw.columns, dy.rows, 1, {call.f32(0), dy.pitch, true},
             {call.f32(1), x.pitch}, call.add(2), call.f32(2), dw.pitch);
    return Status::ok();
  });
}

const std::vector<KernelEntry> &gtp::rt::host::linearKernels() {
  static const std::vector<KernelEntry> table = {
      {"linear", linear},
      {"linear_bias", linearBias},
      {"linear_dgrad", linearDgrad},
      {"linear_wgrad", linearWgrad},
  };
  return table;
}
