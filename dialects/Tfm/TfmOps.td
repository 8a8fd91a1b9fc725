//===- TfmOps.td - Operations of the logical program ----------------------===//
//
// Here those that a program is put together with; what it computes is in
// TfmForwardOps.td, TfmStepOps.td and TfmFusedOps.td. Every op has its meaning
// under its name; kernels of the same name implement it
// (include/gtp/Plan/KernelRegistry.h).
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMOPS
#define GTP_DIALECTS_TFM_TFMOPS

include "dialects/Tfm/TfmDialect.td"
include "dialects/Tfm/TfmInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Tfm_Float : AnyTypeOf<[F32, BF16, F64], "f32, bf16 or f64">;
def Tfm_Tensor : StaticShapeTensorOf<[Tfm_Float]>;
def Tfm_Ids : StaticShapeTensorOf<[I32]>;
def Tfm_Remainder : StaticShapeTensorOf<[I16]>;
def Tfm_Count : 0DTensorOf<[I64]>;
def Tfm_Scalar : 0DTensorOf<[F32, F64]>;
def Tfm_Positive : ConfinedAttr<I64Attr, [IntPositive]>;

/// An op without side effects that describes its placement and its cost.
class Tfm_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<Tfm_PlacementInterface>])>;

def Tfm_ParameterOp : Tfm_Op<"parameter", [Symbol]> {
  let summary = "a weight of the model";
  let description = [{
    Declares a weight of logical shape. `tensors` names, in row order, the
    checkpoint tensors that its dimension 0 consists of, with their rows: one,
    until `tfm-pack` joins linears that share an input. Where checkpoints lay a
    tensor out in another way, its rows say how: `transposed`, it is there
    `[columns, rows]`; `interleaved 8 by 3`, its rows are there `[8, 3, ...]` and here
    `[3, 8, ...]`, as when q, k and v follow each other head by head. `tied` lists other
    checkpoint names of the same weight. `init` is how it starts without a
    checkpoint: "normal" (mean 0, the model's initializer_range), "ones" or "zeros".

    What may be decided for one parameter alone: `frozen`, it is not trained, so it has no
    gradient and no state; `replicated`, every rank holds all of it; `prefetch`, when its
    gathers start, whatever is chosen for the others: "off" (right before the use), "auto"
    (when it pays), or so many gathers ahead ("3").

    Example:
    ```mlir
    tfm.parameter @model.norm.weight : tensor<64xf32> init "ones"
      tensors ["model.norm.weight" = 64]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Tfm_Tensor>:$type,
                       StrAttr:$init,
                       StrArrayAttr:$tensor_names, DenseI64ArrayAttr:$tensor_rows,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$tied,
                       OptionalAttr<DenseI64ArrayAttr>:$tensor_layouts,
                       UnitAttr:$frozen, UnitAttr:$replicated, OptionalAttr<StrAttr>:$prefetch);
  let extraClassDeclaration = [{
    /// Whether what is decided for it alone is the same for the other.
    bool isDecidedAs(ParameterOp other) {
      return getFrozen() == other.getFrozen() && getReplicated() == other.getReplicated() &&
             getPrefetchAttr() == other.getPrefetchAttr();
    }
    /// Per tensor 0 0 (as here), -1 0 (transposed) or groups and parts of an
    /// interleaving; nothing when all are as here.
    static constexpr int64_t kTransposed = -1;
  }];
  let hasVerifier = 1;
  let hasCustomAssemblyFormat = 1;
}

def Tfm_GetOp : Tfm_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a parameter";
  let description = [{
    Only in the forward program; the training step has an argument a parameter.

    Example:
    ```mlir
    %w = tfm.get @model.norm.weight : tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$parameter attr-dict `:` type($result)";
}

def Tfm_MicrobatchesOp : Tfm_Op<"microbatches", [
    RecursiveMemoryEffects, SingleBlock]> {
  let summary = "sums of what a region yields over the microbatches of a step";
  let description = [{
    Runs its region once for each index j of dimension 0 of the inputs, with
    slice j of every input as block argument, and returns the sum over j of each
    yielded value. The sum is the only thing that crosses iterations.

    Example:
    ```mlir
    %grad, %loss = tfm.microbatches (%tok : tensor<8x128xi32> in %tokens,
                                     %lab : tensor<8x128xi32> in %labels)
        : (tensor<4x8x128xi32>, tensor<4x8x128xi32>) -> (tensor<64x64xf32>, tensor<f32>) {
      ...
      tfm.yield %dw, %l : tensor<64x64xf32>, tensor<f32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let extraClassDeclaration = [{
    /// How often the region runs.
    int64_t getMicrobatchCount() {
      return ::llvm::cast<::mlir::RankedTensorType>(getInputs().front().getType())
          .getDimSize(0);
    }
  }];
  let hasVerifier = 1;
  let hasCustomAssemblyFormat = 1;
}

def Tfm_YieldOp : Tfm_Op<"yield", [Pure, Terminator, HasParent<"MicrobatchesOp">]> {
  let summary = "what one microbatch contributes";
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

include "dialects/Tfm/TfmForwardOps.td"
include "dialects/Tfm/TfmStepOps.td"
include "dialects/Tfm/TfmFusedOps.td"

#endif // GTP_DIALECTS_TFM_TFMOPS
