//===- TfmInterfaces.td - Placement, Cost, Differentiable -----------------===//

#ifndef GTP_DIALECTS_TFM_TFMINTERFACES
#define GTP_DIALECTS_TFM_TFMINTERFACES

include "mlir/IR/OpBase.td"

def Tfm_PlacementInterface : OpInterface<"PlacementOpInterface"> {
  let cppNamespace = "::gtp::tfm";
  let description = [{
    Says which dimensions of operands and results are one and the same, so that
    placements propagate and mismatches become conversions, with no pass that
    knows the op. `tfm.linear` for example has the factors batch, sequence, rows
    (in `w` and the result) and columns (in `x` and `w`, not in the result: cut, it
    makes the result partial).
  }];
  let methods = [InterfaceMethod<
    "The rule of this op, on its own types.",
    "::gtp::tfm::PlacementRule", "getPlacementRule">];
}

def Tfm_CostInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::gtp::tfm";
  let description = "Work an op does, for cost models that know the machine.";
  let methods = [InterfaceMethod<
    "Flops, bytes and the resource that limits it; by default it moves every "
    "operand and result once.",
    "::gtp::tfm::OpCost", "getCost", (ins), "", [{
      ::gtp::tfm::OpCost cost;
      cost.bytes = ::gtp::tfm::tensorBytes($_op->getOperandTypes()) +
                   ::gtp::tfm::tensorBytes($_op->getResultTypes());
      return cost;
    }]>];
}

def Tfm_DifferentiableInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::gtp::tfm";
  let description = [{
    Builds the vector-Jacobian product of a forward op: given the cotangents of
    its results (null where a result is not used), the cotangent of each operand
    (null where it has none, as for token ids). Builds only what is asked for, at
    the builder's insertion point, with locations that name this op (see
    `gradientLoc`).
  }];
  let methods = [InterfaceMethod<
    "One value an operand; null for operands that are not `needed`. Nothing at "
    "all, after a diagnostic, when a cotangent that it was given has no product.",
    "::llvm::SmallVector<::mlir::Value>", "buildVjp",
    (ins "::mlir::OpBuilder &":$builder,
         "::llvm::ArrayRef<::mlir::Value>":$cotangents,
         "::llvm::ArrayRef<bool>":$needed,
         "const ::gtp::tfm::VjpOptions &":$options)>];
}

#endif // GTP_DIALECTS_TFM_TFMINTERFACES
