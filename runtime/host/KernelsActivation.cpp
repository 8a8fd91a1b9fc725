//===- KernelsActivation.cpp - gelu, softcap, products --------------------===//

#include "Kernel.h"

#include <cmath>

using namespace gtp;
using namespace gtp::rt::host;

/// out = f(x) element by element; x and out may be one.
template <typename F>
static KernelBody unary(const KernelSite &site, F f) {
  return [x = site.shape(0), y = site.shape(1), f](const KernelCall &call) {
    for (uint64_t row = 0; row < y.rows; ++row) {
      const float *in = call.f32(0) + row * x.pitch;
      float *out = call.f32(1) + row * y.pitch;
      for (uint64_t i = 0; i < y.columns; ++i)
        out[i] = f(in[i]);
    }
    return Status::ok();
  };
}

/// out = f(a, b) element by element; each may be out.
template <typename F>
static KernelBody binary(const KernelSite &site, F f) {
  return [a = site.shape(0), b = site.shape(1), y = site.shape(2),
          f](const KernelCall &call) {
    for (uint64_t row = 0; row < y.rows; ++row) {
      const float *left = call.f32(0) + row * a.pitch;
      const float *right = call.f32(1) + row * b.pitch;
      float *out = call.f32(2) + row * y.pitch;
      for (uint64_t i = 0; i < y.columns; ++i)
        out[i] = f(left[i], right[i]);
    }
    return Status::ok();
  };
}

static constexpr float kRootHalf = 0.70710678118654752f;
static constexpr float kRootTwoOverPi = 0.79788456080286536f;
static constexpr float kInverseRootTwoPi = 0.39894228040143268f;
static constexpr float kCubic = 0.044715f;

static float geluExact(float x) {
  return 0.5f * x * (1.0f + std::erf(x * kRootHalf));
}

static float geluExactGrad(float dy, float x) {
  float density = kInverseRootTwoPi * std::exp(-0.5f * x * x);
  return dy * (0.5f * (1.0f + std::erf(x * kRootHalf)) + x * density);
}

static float geluTanh(float x) {
  float inner = kRootTwoOverPi * (x + kCubic * x * x * x);
  return 0.5f * x * (1.0f + std::tanh(inner));
}

static float geluTanhGrad(float dy, float x) {
  float t = std::tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
  float slope = kRootTwoOverPi * (1.0f + 3.0f * kCubic * x * x);
  return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
}

static StatusOr<KernelBody> gelu(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return site.integer("approximate") ? unary(site, geluTanh)
                                     : unary(site, geluExact);
}

static StatusOr<KernelBody> geluGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return site.integer("approximate") ? binary(site, geluTanhGrad)
                                     : binary(site, geluExactGrad);
}

static StatusOr<KernelBody> softcap(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return unary(site, [cap = static_cast<float>(site.real("cap"))](float x) {
    return cap * std::tanh(x / cap);
  });
}

static StatusOr<KernelBody> softcapGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return binary(
      site, [cap = static_cast<float>(site.real("cap"))](float dy, float x) {
        float t = std::tanh(x / cap);
        return dy * (1.0f - t * t);
      });
}

static StatusOr<KernelBody> scale(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return unary(site, [factor = static_cast<float>(site.real("factor"))](
                         float x) { return factor * x; });
}

static StatusOr<KernelBody> mul(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return binary(site, [](float a, float b) { return a * b; });
}

const std::vector<KernelEntry> &gtp::rt::host::activationKernels() {
  static const std::vector<KernelEntry> table = {
      {"gelu", gelu},   {"gelu_grad", geluGrad}, {"mul", mul},
      {"scale", scale}, {"softcap", softcap},    {"softcap_grad", softcapGrad},
  };
  return table;
}
