//===- TfmMeaning.h - What one tfm op computes, in float64 ------*- C++ -*-===//
//
// Parts of `interpret`. Norms, attention and loss are files of their own.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_LIB_TFMMEANING_H
#define GTP_TEST_LIB_TFMMEANING_H

#include "TfmInterpreter.h"

namespace gtp::test {

using Tensors = llvm::SmallVector<Tensor>;
using Operands = llvm::ArrayRef<const Tensor *>;

/// Zeros of the types of the op's results.
inline Tensors zeros(mlir::Operation *op) {
  Tensors results;
  for (mlir::Value result : op->getResults())
    results.emplace_back(result);
  return results;
}

/// `f(group of x, index of the group)` for groups of `size` features.
template <typename F>
void forEachGroup(const Tensor &x, int64_t size, F f) {
  for (int64_t i = 0, end = x.values.size() / size; i < end; ++i)
    f(x.values.data() + i * size, i);
}

Tensors meaning(tfm::EmbeddingOp op, Operands in);
Tensors meaning(tfm::AddBiasOp op, Operands in);
Tensors meaning(tfm::DocumentStartsOp op, Operands in);
Tensors meaning(tfm::AddPositionsOp op, Operands in);
Tensors meaning(tfm::LinearOp op, Operands in);
Tensors meaning(tfm::RopeOp op, Operands in);
Tensors meaning(tfm::SwigluOp op, Operands in);
Tensors meaning(tfm::GeluOp op, Operands in);
Tensors meaning(tfm::GeluGradOp op, Operands in);
Tensors meaning(tfm::SoftcapOp op, Operands in);
Tensors meaning(tfm::SoftcapGradOp op, Operands in);
Tensors meaning(tfm::ScaleOp op, Operands in);
Tensors meaning(tfm::MulOp op, Operands in);
Tensors meaning(tfm::AddOp op, Operands in);
Tensors meaning(tfm::SplitOp op, Operands in);
Tensors meaning(tfm::ConcatOp op, Operands in);
Tensors meaning(tfm::EmbeddingGradOp op, Operands in);
Tensors meaning(tfm::BiasGradOp op, Operands in);
Tensors meaning(tfm::PositionsGradOp op, Operands in);
Tensors meaning(tfm::LinearDgradOp op, Operands in);
Tensors meaning(tfm::LinearWgradOp op, Operands in);
Tensors meaning(tfm::SwigluGradOp op, Operands in);

Tensors meaning(tfm::RmsNormOp op, Operands in);
Tensors meaning(tfm::LayerNormOp op, Operands in);
Tensors meaning(tfm::LayerNormGradOp op, Operands in);
Tensors meaning(tfm::RmsNormGradOp op, Operands in);

Tensors meaning(tfm::AttentionOp op, Operands in);
Tensors meaning(tfm::AttentionGradOp op, Operands in);

Tensors meaning(tfm::CrossEntropyOp op, Operands in);
Tensors meaning(tfm::CrossEntropyGradOp op, Operands in);
Tensors meaning(tfm::CountLabelsOp op, Operands in);
Tensors meaning(tfm::SumSquaresOp op, Operands in);
Tensors meaning(tfm::ClipScaleOp op, Operands in);
Tensors meaning(tfm::AdamwOp op, Operands in);
Tensors meaning(tfm::SgdOp op, Operands in);

} // namespace gtp::test

#endif // GTP_TEST_LIB_TFMMEANING_H
