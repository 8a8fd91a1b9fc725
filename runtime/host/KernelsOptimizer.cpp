//===- KernelsOptimizer.cpp - Norm, clipping and weight updates -----------===//

#include "Kernel.h"
#include "VectorMath.h"
#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

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
                         " is neither f32 nor bf16, which the host backend "
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

namespace {

/// A float32 master.
struct WholeMaster {
  float *values;

  explicit WholeMaster(const KernelCall &call) : values(call.f32(0)) {}
  float load(uint64_t i) const { return values[i]; }
  void store(uint64_t i, float value) const { values[i] = value; }
};

/// One in two halves: bfloat16, here as floats (Staging.h), and the rest.
struct SplitMaster {
  float *high;
  int16_t *low;

  explicit SplitMaster(const KernelCall &call)
      : high(call.f32(0)), low(call.as<int16_t>(1)) {}
  float load(uint64_t i) const {
    return SplitFloat(BFloat16(high[i]), low[i]).join();
  }
  void store(uint64_t i, float value) const {
    SplitFloat halves(value);
    high[i] = halves.high;
    low[i] = halves.low;
  }
};

/// Operands of the master in front of the others.
template <typename Master>
constexpr size_t kMasterOperands = std::is_same_v<Master, SplitMaster> ? 2 : 1;

/// Writes the compute copy, operand `index`, if the call has one.
class Publisher {
public:
  Publisher(const KernelSite &site, size_t index)
      : index(index), exists(index < site.count()),
        narrow(exists && site.storedType(index) == plan::pb::BF16) {}

  void publish(const KernelCall &call, uint64_t count) const {
    if (!exists)
      return;
    const float *w = call.f32(0);
    float *out = call.f32(index);
    if (!narrow)
      std::copy_n(w, count, out);
    else
      for (uint64_t i = 0; i < count; ++i)
        out[i] = SplitFloat(w[i]).high;
  }

private:
  size_t index;
  bool exists, narrow;
};

} // namespace

template <typename Master>
static StatusOr<KernelBody> adamw(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  constexpr size_t m = kMasterOperands<Master>, v = m + 1, grads = m + 2;
  constexpr size_t hypers = m + 3, scales = m + 4;
  return KernelBody(
      [count = site.shape(0).elements(), decays = site.integer("decay") != 0,
       publisher = Publisher(site, scales + 1)](const KernelCall &call) {
        const Master w(call);
        float *first = call.f32(m), *second = call.f32(v);
        const float *grad = call.f32(grads), *hyper = call.f32(hypers);
        const float scale = *call.f32(scales), rate = hyper[Rate];
        const float beta1 = hyper[Beta1], beta2 = hyper[Beta2];
        const float decay = decays ? hyper[Decay] : 0.0f, eps = hyper[Epsilon];
        const float correction1 = hyper[Correction1];
        const float correction2 = hyper[Correction2];
        const uint64_t updated = std::isnan(scale) ? 0 : count;
        for (uint64_t i = 0; i < updated; ++i) {
          float g = scale * grad[i], old = w.load(i);
          first[i] = beta1 * first[i] + (1 - beta1) * g;
          second[i] = beta2 * second[i] + (1 - beta2) * g * g;
          float step = (first[i] / correction1) /
                       (std::sqrt(second[i] / correction2) + eps);
          w.store(i, old - rate * (step + decay * old));
        }
        publisher.publish(call, count);
        return Status::ok();
      });
}

template <typename Master>
static StatusOr<KernelBody> sgd(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  constexpr size_t grads = kMasterOperands<Master>, hypers = grads + 1;
  constexpr size_t scales = grads + 2;
  return KernelBody(
      [count = site.shape(0).elements(), decays = site.integer("decay") != 0,
       publisher = Publisher(site, scales + 1)](const KernelCall &call) {
        const Master w(call);
        const float *grad = call.f32(grads), *hyper = call.f32(hypers);
        const float scale = *call.f32(scales), rate = hyper[Rate];
        const float decay = decays ? hyper[Decay] : 0.0f;
        const uint64_t updated = std::isnan(scale) ? 0 : count;
        for (uint64_t i = 0; i < updated; ++i) {
          float old = w.load(i);
          w.store(i, old - rate * (scale * grad[i] + decay * old));
        }
        publisher.publish(call, count);
        return Status::ok();
      });
}

const std::vector<KernelEntry> &gtp::rt::host::optimizerKernels() {
  static const std::vector<KernelEntry> table = {
      {"adamw", adamw<WholeMaster>},   {"adamw_split", adamw<SplitMaster>},
      {"clip_scale", clipScale},       {"sgd", sgd<WholeMaster>},
      {"sgd_split", sgd<SplitMaster>}, {"sum_squares", sumSquaresKernel},
  };
  return table;
}
