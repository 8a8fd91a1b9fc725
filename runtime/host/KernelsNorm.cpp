//===- KernelsNorm.cpp - norms and their gradients
//-------------------------===//

#include "Kernel.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::rt::host;

static float reciprocalRoot(const float *x, uint64_t count, double eps) {
  double mean = sumSquares(x, count) / static_cast<double>(count);
  return static_cast<float>(1.0 / std::sqrt(mean + eps));
}

static StatusOr<KernelBody> rmsNorm(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([x = site.shape(0), group = site.shape(1).columns,
                     y = site.shape(2), eps = site.real("eps"),
                     offset = static_cast<float>(site.integer("unit_offset"))](
                        const KernelCall &call) {
    const float *weight = call.f32(1);
    for (uint64_t row = 0; row < x.rows; ++row)
      for (uint64_t start = 0; start < x.columns; start += group) {
        const float *in = call.f32(0) + row * x.pitch + start;
        float *out = call.f32(2) + row * y.pitch + start;
        float r = reciprocalRoot(in, group, eps);
        for (uint64_t i = 0; i < group; ++i)
          out[i] = in[i] * r * (offset + weight[i]);
      }
    return Status::ok();
  });
}

static StatusOr<KernelBody> rmsNormGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([dy = site.shape(0), x = site.shape(1),
                     group = site.shape(2).columns, dx = site.shape(3),
                     trained = site.count() > 4, eps = site.real("eps"),
                     offset = static_cast<float>(site.integer("unit_offset"))](
                        const KernelCall &call) {
    const float *weight = call.f32(2);
    double *sums = threadSums(group);
    std::fill_n(sums, group, 0.0);
    for (uint64_t row = 0; row < x.rows; ++row)
      for (uint64_t start = 0; start < x.columns; start += group) {
        const float *in = call.f32(1) + row * x.pitch + start;
        const float *grad = call.f32(0) + row * dy.pitch + start;
        float *out = call.f32(3) + row * dx.pitch + start;
        float r = reciprocalRoot(in, group, eps);
        double inner = sumOf(group, [=](uint64_t i) {
          return static_cast<double>(grad[i]) * (offset + weight[i]) * in[i];
        });
        auto c =
            static_cast<float>(inner / static_cast<double>(group) * r * r * r);
        // Before dx, which may replace dy.
        for (uint64_t i = 0; i < group; ++i)
          sums[i] += static_cast<double>(grad[i] * in[i] * r);
        for (uint64_t i = 0; i < group; ++i)
          out[i] = r * (grad[i] * (offset + weight[i])) - in[i] * c;
      }
    if (!trained)
      return Status::ok();
    float *dweight = call.f32(4);
    for (uint64_t i = 0; i < group; ++i)
      dweight[i] =
          static_cast<float>(sums[i] + (call.add(4) ? dweight[i] : 0.0f));
    return Status::ok();
  });
}

namespace {
/// Mean and 1 / standard deviation of a group.
struct Moments {
  float mean, r;

  Moments(const float *x, uint64_t count, double eps) {
    auto size = static_cast<double>(count);
    double m =
        sumOf(count, [=](uint64_t i) { return static_cast<double>(x[i]); }) /
        size;
    double variance =
        sumOf(count, [=](uint64_t i) { return (x[i] - m) * (x[i] - m); }) /
        size;
    mean = static_cast<float>(m);
    r = static_cast<float>(1.0 / std::sqrt(variance + eps));
  }
};
} // namespace

static StatusOr<KernelBody> layerNorm(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([x = site.shape(0), group = site.shape(1).columns,
                     y = site.shape(2),
                     eps = site.real("eps")](const KernelCall &call) {
    const float *weight = call.f32(1);
    for (uint64_t row = 0; row < x.rows; ++row)
      for (uint64_t start = 0; start < x.columns; start += group) {
        const float *in = call.f32(0) + row * x.pitch + start;
        float *out = call.f32(2) + row * y.pitch + start;
        Moments moments(in, group, eps);
        for (uint64_t i = 0; i < group; ++i)
          out[i] = (in[i] - moments.mean) * moments.r * weight[i];
      }
    return Status::ok();
  });
}

static StatusOr<KernelBody> layerNormGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([dy = site.shape(0), x = site.shape(1),
                     group = site.shape(2).columns, dx = site.shape(3),
                     trained = site.count() > 4,
                     eps = site.real("eps")](const KernelCall &call) {
    const float *weight = call.f32(2);
    double *sums = threadSums(group);
    std::fill_n(sums, group, 0.0);
    auto size = static_cast<double>(group);
    for (uint64_t row = 0; row < x.rows; ++row)
      for (uint64_t start = 0; start < x.columns; start += group) {
        const float *in = call.f32(1) + row * x.pitch + start;
        const float *grad = call.f32(0) + row * dy.pitch + start;
        float *out = call.f32(3) + row * dx.pitch + start;
        Moments m(in, group, eps);
        auto mean = static_cast<float>(
            sumOf(group,
                  [=](uint64_t i) {
                    return static_cast<double>(grad[i]) * weight[i];
                  }) /
            size);
        auto inner =
            static_cast<float>(sumOf(group,
                                     [=](uint64_t i) {
                                       return static_cast<double>(grad[i]) *
                                              weight[i] *
                                              ((in[i] - m.mean) * m.r);
                                     }) /
                               size);
        // Before dx, which may replace dy.
        for (uint64_t i = 0; i < group; ++i)
          sums[i] += static_cast<double>(grad[i] * ((in[i] - m.mean) * m.r));
        for (uint64_t i = 0; i < group; ++i)
          out[i] = m.r * (grad[i] * weight[i] - mean -
                          (in[i] - m.mean) * m.r * inner);
      }
    if (!trained)
      return Status::ok();
    float *dweight = call.f32(4);
    for (uint64_t i = 0; i < group; ++i)
      dweight[i] =
          static_cast<float>(sums[i] + (call.add(4) ? dweight[i] : 0.0f));
    return Status::ok();
  });
}

const std::vector<KernelEntry> &gtp::rt::host::normKernels() {
  static const std::vector<KernelEntry> table = {
      {"layer_norm", layerNorm},
      {"layer_norm_grad", layerNormGrad},
      {"rms_norm", rmsNorm},
      {"rms_norm_grad", rmsNormGrad},
  };
  return table;
}
