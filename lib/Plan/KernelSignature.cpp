//===- KernelSignature.cpp - What measured times are told apart by --------===//

#include "gtp/Plan/KernelSignature.h"

#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/Operand.h"

using namespace gtp::plan;

void gtp::plan::addToSignature(std::string &signature,
                               const pb::Operand &operand) {
  pb::Operand dense = operand;
  dense.clear_pitch();
  signature += (signature.empty() ? "" : " ") + describe(dense);
}

std::string gtp::plan::signatureOf(const KernelSpec &spec,
                                   const pb::Kernel &kernel) {
  std::string signature;
  const auto count = static_cast<size_t>(kernel.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *operand = operandSpec(spec, i, count);
    if (operand && operand->role != Role::Scratch)
      addToSignature(signature, kernel.operands(static_cast<int>(i)));
  }
  return signature;
}
