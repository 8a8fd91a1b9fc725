//===- KernelsOptimizer.cpp - Norm, clipping and weight updates -----------===//

#include "Kernel.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace gtp;
using namespace gtp::rt::host;

/// Positions in `hyper`.
namespace {
enum Hyper { Rate, Decay, Beta1, Beta2, Epsilon, Correction1, Correction2 };
} // namespace

static StatusOr<KernelBody> sumSquaresKernel(const KernelSite &site) {
  // The result is float64 by definition.
  if (site.operand(0).dtype() != plan::pb::F32)
    return Status::error("operand " + site.text(0) +
                         " is not float32, which is all the host backend "
                         "computes in");
  return KernelBody([count = site.shape(0).elements()](const KernelCall &call) {
    *call.as<double>(1) = sumSquares(call.f32(0), count);
    return Status::ok();
  });
}

static StatusOr<KernelBody> clipScale(const KernelSite &site) {
  return KernelBody([most = static_cast<float>(site.real("max_norm"))](
                        const KernelCall &call) {
    auto norm = static_cast<float>(std::sqrt(*call.as<double>(0)));
    *call.f32(1) = norm;
    if (!std::isfinite(norm))
      *call.f32(2) = std::numeric_limits<float>::quiet_NaN();
    else
      *call.f32(2) = most == 0 ? 1.0f : std::min(1.0f, most / (norm + 1e-6f));
    return Status::ok();
  });
}

static StatusOr<KernelBody> adamw(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([count = site.shape(0).elements(),
                     decays = site.integer("decay") != 0,
                     publishes = site.count() > 6](const KernelCall &call) {
    float *w = call.f32(0), *m = call.f32(1), *v = call.f32(2);
    const float *grad = call.f32(3), *hyper = call.f32(4);
    const float scale = *call.f32(5), rate = hyper[Rate];
    const float beta1 = hyper[Beta1], beta2 = hyper[Beta2];
    const float decay = decays ? hyper[Decay] : 0.0f, eps = hyper[Epsilon];
    const float correction1 = hyper[Correction1];
    const float correction2 = hyper[Correction2];
    const uint64_t updated = std::isnan(scale) ? 0 : count;
    for (uint64_t i = 0; i < updated; ++i) {
      float g = scale * grad[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      float step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + eps);
      w[i] = w[i] - rate * (step + decay * w[i]);
    }
    if (publishes)
      std::copy_n(w, count, call.f32(6));
    return Status::ok();
  });
}

static StatusOr<KernelBody> sgd(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([count = site.shape(0).elements(),
                     decays = site.integer("decay") != 0,
                     publishes = site.count() > 4](const KernelCall &call) {
    float *w = call.f32(0);
    const float *grad = call.f32(1), *hyper = call.f32(2);
    const float scale = *call.f32(3), rate = hyper[Rate];
    const float decay = decays ? hyper[Decay] : 0.0f;
    const uint64_t updated = std::isnan(scale) ? 0 : count;
    for (uint64_t i = 0; i < updated; ++i)
      w[i] = w[i] - rate * (scale * grad[i] + decay * w[i]);
    if (publishes)
      std::copy_n(w, count, call.f32(4));
    return Status::ok();
  });
}

const std::vector<KernelEntry> &gtp::rt::host::optimizerKernels() {
  static const std::vector<KernelEntry> table = {
      {"adamw", adamw},
      {"clip_scale", clipScale},
      {"sgd", sgd},
      {"sum_squares", sumSquaresKernel},
  };
  return table;
}
