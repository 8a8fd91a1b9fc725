//===- KernelsElementwise.cpp - swiglu, sums, casts and copies ------------===//

#include "Kernel.h"
#include "VectorMath.h"
#include "gtp/Support/BFloat16.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt::host;
namespace pb = gtp::plan::pb;

static StatusOr<KernelBody> swiglu(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([gate = site.shape(0), up = site.shape(1),
                     y = site.shape(2)](const KernelCall &call) {
    for (uint64_t row = 0; row < y.rows; ++row) {
      const float *a = call.f32(0) + row * gate.pitch;
      const float *b = call.f32(1) + row * up.pitch;
      float *out = call.f32(2) + row * y.pitch;
      for (uint64_t i = 0; i < y.columns; ++i)
        out[i] = a[i] / (1.0f + fastExp(-a[i])) * b[i];
    }
    return Status::ok();
  });
}

static StatusOr<KernelBody> swigluGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([dy = site.shape(0), gate = site.shape(1),
                     up = site.shape(2), dgate = site.shape(3),
                     dup = site.shape(4)](const KernelCall &call) {
    for (uint64_t row = 0; row < dy.rows; ++row) {
      const float *d = call.f32(0) + row * dy.pitch;
      const float *a = call.f32(1) + row * gate.pitch;
      const float *b = call.f32(2) + row * up.pitch;
      float *da = call.f32(3) + row * dgate.pitch;
      float *db = call.f32(4) + row * dup.pitch;
      for (uint64_t i = 0; i < dy.columns; ++i) {
        // Both results may replace an input: read all first.
        float g = a[i], u = b[i], grad = d[i];
        float s = 1.0f / (1.0f + fastExp(-g));
        da[i] = grad * u * s * (1.0f + g * (1.0f - s));
        db[i] = grad * g * s;
      }
    }
    return Status::ok();
  });
}

template <typename T>
static KernelBody addBody(const KernelSite &site) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < site.count(); ++i)
    shapes.push_back(site.shape(i));
  return [shapes](const KernelCall &call) {
    const size_t last = shapes.size() - 1;
    const Shape &shape = shapes[last];
    for (uint64_t row = 0; row < shape.rows; ++row) {
      T *out = call.as<T>(last) + row * shape.pitch;
      size_t next = 0;
      if (!call.add(last)) {
        // Both of the first two at once: out may be the second.
        const T *a = call.as<T>(0) + row * shapes[0].pitch;
        if (last == 1) {
          std::memmove(out, a, shape.columns * sizeof(T));
          continue;
        }
        const T *b = call.as<T>(1) + row * shapes[1].pitch;
        for (uint64_t i = 0; i < shape.columns; ++i)
          out[i] = a[i] + b[i];
        next = 2;
      }
      for (; next < last; ++next) {
        const T *term = call.as<T>(next) + row * shapes[next].pitch;
        for (uint64_t i = 0; i < shape.columns; ++i)
          out[i] += term[i];
      }
    }
    return Status::ok();
  };
}

static StatusOr<KernelBody> add(const KernelSite &site) {
  // One float type; bf16 is staged as f32.
  return site.operand(0).dtype() == pb::F64 ? addBody<double>(site)
                                            : addBody<float>(site);
}

template <typename From, typename To>
static KernelBody castBody(const KernelSite &site) {
  return [x = site.shape(0), y = site.shape(1)](const KernelCall &call) {
    for (uint64_t row = 0; row < x.rows; ++row) {
      const From *in = call.as<From>(0) + row * x.pitch;
      To *out = call.as<To>(1) + row * y.pitch;
      if (call.add(1))
        for (uint64_t i = 0; i < x.columns; ++i)
          out[i] = static_cast<To>(out[i] + in[i]);
      else
        for (uint64_t i = 0; i < x.columns; ++i)
          out[i] = static_cast<To>(in[i]);
    }
    return Status::ok();
  };
}

template <typename From>
static KernelBody castFrom(const KernelSite &site) {
  switch (site.operand(1).dtype()) {
  case pb::BF16:
    return castBody<From, BFloat16>(site);
  case pb::F64:
    return castBody<From, double>(site);
  default:
    return castBody<From, float>(site);
  }
}

/// Both types are float types.
static StatusOr<KernelBody> cast(const KernelSite &site) {
  switch (site.operand(0).dtype()) {
  case pb::BF16:
    return castFrom<BFloat16>(site);
  case pb::F64:
    return castFrom<double>(site);
  default:
    return castFrom<float>(site);
  }
}

static StatusOr<KernelBody> concat(const KernelSite &site) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < site.count(); ++i)
    shapes.push_back(site.shape(i));
  return KernelBody([shapes](const KernelCall &call) {
    const Shape &out = shapes.back();
    for (uint64_t row = 0; row < out.rows; ++row) {
      auto *to = call.as<std::byte>(shapes.size() - 1) +
                 row * out.pitch * out.elementBytes;
      for (size_t i = 0; i + 1 < shapes.size(); ++i) {
        uint64_t bytes = shapes[i].columns * out.elementBytes;
        std::memcpy(to,
                    call.as<std::byte>(i) +
                        row * shapes[i].pitch * out.elementBytes,
                    bytes);
        to += bytes;
      }
    }
    return Status::ok();
  });
}

template <typename T>
static KernelBody fullBody(const KernelSite &site) {
  return [shape = site.shape(0),
          value = static_cast<T>(site.real("value"))](const KernelCall &call) {
    for (uint64_t row = 0; row < shape.rows; ++row)
      for (uint64_t i = 0; i < shape.columns; ++i)
        call.as<T>(0)[row * shape.pitch + i] = value;
    return Status::ok();
  };
}

static StatusOr<KernelBody> full(const KernelSite &site) {
  double value = site.real("value");
  // Outside the type's range the conversion means nothing.
  auto fits = [&](double limit) { return value >= -limit && value < limit; };
  switch (site.operand(0).dtype()) {
  case pb::F32:
    return fullBody<float>(site);
  case pb::F64:
    return fullBody<double>(site);
  case pb::BF16:
    return fullBody<BFloat16>(site);
  case pb::I32:
    if (fits(0x1p31))
      return fullBody<int32_t>(site);
    break;
  case pb::I64:
    if (fits(0x1p63))
      return fullBody<int64_t>(site);
    break;
  case pb::U8:
    if (value >= 0 && value < 256)
      return fullBody<uint8_t>(site);
    break;
  default:
    break;
  }
  return Status::error("the host cannot fill " + site.text(0) + " with " +
                       std::to_string(value));
}

static StatusOr<KernelBody> keepFirst(const KernelSite &site) {
  uint64_t bytes = site.shape(0).elements() * site.shape(0).elementBytes;
  return KernelBody(
      [bytes, mask = site.integer("axes_mask")](const KernelCall &call) {
        bool first = true;
        for (unsigned axis = 0; axis < 63; ++axis)
          if (mask >> axis & 1)
            first &= call.coordinates[axis] == 0;
        if (first)
          std::memmove(call.as<std::byte>(1), call.as<std::byte>(0), bytes);
        else
          std::memset(call.as<std::byte>(1), 0, bytes);
        return Status::ok();
      });
}

const std::vector<KernelEntry> &gtp::rt::host::elementwiseKernels() {
  static const std::vector<KernelEntry> table = {
      {"add", add},
      {"cast", cast, true},
      {"concat", concat, true},
      {"full", full, true},
      {"keep_first", keepFirst, true},
      {"swiglu", swiglu},
      {"swiglu_grad", swigluGrad},
  };
  return table;
}
