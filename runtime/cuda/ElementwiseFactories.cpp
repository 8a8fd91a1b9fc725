//===- ElementwiseFactories.cpp - Bodies of elementwise kernels -----------===//

#include "Factory.h"

#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

static StatusOr<KernelBody> makeUnary(const Site &site, Unary op,
                                      float factor = 0) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody([context = &site.context, x = Slot(site, 0),
                     y = Slot(site, 1), op, factor](const KernelCall &call) {
    GTP_CUDA(unary(op, x.in(call), y.in(call), factor,
                   context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeBinary(const Site &site, Binary op,
                                       float factor = 0) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody([context = &site.context, a = Slot(site, 0),
                     b = Slot(site, 1), y = Slot(site, 2), op,
                     factor](const KernelCall &call) {
    GTP_CUDA(binary(op, a.in(call), b.in(call), y.in(call), factor,
                    context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeGelu(const Site &site) {
  return makeUnary(site, site.integer("approximate") ? Unary::GeluTanh
                                                     : Unary::GeluExact);
}
static StatusOr<KernelBody> makeBiasGelu(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody([context = &site.context, x = Slot(site, 0),
                     sum = Slot(site, 2), y = Slot(site, 3),
                     approximate = site.integer("approximate") !=
                                   0](const KernelCall &call) {
    GTP_CUDA(biasGelu(x.in(call), call.as<void>(1), sum.in(call), y.in(call),
                      approximate, context->stream(call.stream)));
    return Status::ok();
  });
}
static StatusOr<KernelBody> makeGeluGrad(const Site &site) {
  return makeBinary(site, site.integer("approximate") ? Binary::GeluTanhGrad
                                                      : Binary::GeluExactGrad);
}
static StatusOr<KernelBody> makeSoftcap(const Site &site) {
  return makeUnary(site, Unary::Softcap, static_cast<float>(site.real("cap")));
}
static StatusOr<KernelBody> makeSoftcapGrad(const Site &site) {
  return makeBinary(site, Binary::SoftcapGrad,
                    static_cast<float>(site.real("cap")));
}
static StatusOr<KernelBody> makeScale(const Site &site) {
  return makeUnary(site, Unary::Scale, static_cast<float>(site.real("factor")));
}
static StatusOr<KernelBody> makeMul(const Site &site) {
  return makeBinary(site, Binary::Mul);
}
static StatusOr<KernelBody> makeSwiglu(const Site &site) {
  return makeBinary(site, Binary::Swiglu);
}

static StatusOr<KernelBody> makeSwigluGrad(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody([context = &site.context, dy = Slot(site, 0),
                     gate = Slot(site, 1), up = Slot(site, 2),
                     dgate = Slot(site, 3),
                     dup = Slot(site, 4)](const KernelCall &call) {
    GTP_CUDA(swigluGrad(dy.in(call), gate.in(call), up.in(call), dgate.in(call),
                        dup.in(call), context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeAdd(const Site &site) {
  size_t inputs = site.count() - 1;
  if (inputs > kMostAddends)
    return Status::error("it adds " + std::to_string(inputs) +
                         " tensors; the cuda backend takes " +
                         std::to_string(kMostAddends));
  std::vector<Slot> slots;
  for (size_t i = 0; i < inputs; ++i)
    slots.emplace_back(site, i);
  return KernelBody([context = &site.context, slots,
                     out = Slot(site, inputs)](const KernelCall &call) {
    Tensor tensors[kMostAddends];
    std::transform(slots.begin(), slots.end(), tensors,
                   [&](const Slot &slot) { return slot.in(call); });
    GTP_CUDA(addAll(tensors, slots.size(), out.in(call),
                    context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeCast(const Site &site) {
  return KernelBody([context = &site.context, x = Slot(site, 0),
                     y = Slot(site, 1)](const KernelCall &call) {
    GTP_CUDA(unary(Unary::Copy, x.in(call), y.in(call), 0,
                   context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeConcat(const Site &site) {
  std::vector<rt::Shape> shapes;
  for (size_t i = 0; i < site.count(); ++i)
    shapes.push_back(site.shape(i));
  return KernelBody([context = &site.context, shapes](const KernelCall &call) {
    const rt::Shape &out = shapes.back();
    const uint64_t size = out.elementBytes;
    std::byte *to = call.as<std::byte>(shapes.size() - 1);
    for (size_t i = 0; i + 1 < shapes.size(); ++i) {
      const rt::Shape &in = shapes[i];
      GTP_CUDA(cudaMemcpy2DAsync(to, out.pitch * size, call.as<std::byte>(i),
                                 in.pitch * size, in.columns * size, in.rows,
                                 cudaMemcpyDeviceToDevice,
                                 context->stream(call.stream)));
      to += in.columns * size;
    }
    return Status::ok();
  });
}

template <typename T>
static uint64_t patternOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

static StatusOr<KernelBody> makeFull(const Site &site) {
  double value = site.real("value");
  // Outside the type's range the conversion means nothing.
  auto fits = [&](double limit) { return value >= -limit && value < limit; };
  pb::DType type = site.operand(0).dtype();
  uint64_t pattern = 0;
  if (type == pb::F32)
    pattern = patternOf(static_cast<float>(value));
  else if (type == pb::BF16)
    pattern = BFloat16(value).raw();
  else if (type == pb::F64)
    pattern = patternOf(value);
  else if (type == pb::I32 && fits(0x1p31))
    pattern = patternOf(static_cast<int32_t>(value));
  else if (type == pb::I64 && fits(0x1p63))
    pattern = patternOf(static_cast<int64_t>(value));
  else if (type == pb::U8 && value >= 0 && value < 256)
    pattern = static_cast<uint8_t>(value);
  else
    return Status::error("the cuda backend cannot fill " + site.text(0) +
                         " with " + std::to_string(value));
  return KernelBody([context = &site.context, out = Slot(site, 0), pattern,
                     size = static_cast<unsigned>(site.shape(0).elementBytes)](
                        const KernelCall &call) {
    GTP_CUDA(
        fillPattern(out.in(call), size, pattern, context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeKeepFirst(const Site &site) {
  uint64_t bytes = site.shape(0).elements() * site.shape(0).elementBytes;
  return KernelBody([context = &site.context, bytes,
                     mask = site.integer("axes_mask")](const KernelCall &call) {
    bool first = true;
    for (unsigned axis = 0; axis < 63; ++axis)
      if (mask >> axis & 1)
        first &= call.coordinates[axis] == 0;
    cudaStream_t stream = context->stream(call.stream);
    auto *to = call.as<std::byte>(1);
    const auto *from = call.as<std::byte>(0);
    if (!first)
      GTP_CUDA(cudaMemsetAsync(to, 0, bytes, stream));
    else if (to != from)
      GTP_CUDA(
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    return Status::ok();
  });
}

const std::vector<FactoryEntry> &gtp::rt::cuda::elementwiseFactories() {
  static const std::vector<FactoryEntry> table = {
      {"add", makeAdd},
      {"bias_gelu", makeBiasGelu},
      {"cast", makeCast},
      {"concat", makeConcat},
      {"full", makeFull},
      {"gelu", makeGelu},
      {"gelu_grad", makeGeluGrad},
      {"keep_first", makeKeepFirst},
      {"mul", makeMul},
      {"scale", makeScale},
      {"softcap", makeSoftcap},
      {"softcap_grad", makeSoftcapGrad},
      {"swiglu", makeSwiglu},
      {"swiglu_grad", makeSwigluGrad},
  };
  return table;
}
