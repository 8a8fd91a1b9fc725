//===- Factory.cpp - From a call's site to the body that launches it ------===//

#include "Factory.h"

#include <numeric>

using namespace gtp;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

Status Site::needNarrow(size_t index) const {
  if (operand(index).dtype() != pb::F64)
    return Status::ok();
  return Status::error("operand " + text(index) +
                       " is neither f32 nor bf16, which the cuda backend "
                       "computes in");
}

Status Site::needNarrow() const {
  for (size_t i = 0; i < count(); ++i)
    GTP_RETURN_IF_ERROR(needNarrow(i));
  return Status::ok();
}

Tensor Site::tensor(size_t index) const {
  rt::Shape from = shape(index);
  Tensor tensor;
  tensor.rows = from.rows;
  tensor.columns = from.columns;
  tensor.pitch = from.pitch;
  pb::DType type = operand(index).dtype();
  tensor.type = type == pb::BF16  ? Element::BF16
                : type == pb::F64 ? Element::F64
                                  : Element::F32;
  return tensor;
}

uint64_t Site::alignment(size_t index) const {
  const pb::Operand &place = operand(index);
  // Buffers start at multiples of 256.
  uint64_t common = std::gcd(uint64_t(256), place.offset());
  common = std::gcd(common, place.iteration_stride());
  for (const pb::AxisStride &stride : place.rank_strides())
    common = std::gcd(common, stride.stride());
  return common;
}

Factory gtp::rt::cuda::lookupFactory(std::string_view name) {
  for (const std::vector<FactoryEntry> *family :
       {&attentionFactories(), &elementwiseFactories(), &modelFactories(),
        &updateFactories()})
    for (const FactoryEntry &entry : *family)
      if (entry.name == name)
        return entry.factory;
  return nullptr;
}
