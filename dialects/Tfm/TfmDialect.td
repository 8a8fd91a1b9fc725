//===- TfmDialect.td - What is computed -----------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMDIALECT
#define GTP_DIALECTS_TFM_TFMDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Tfm_Dialect : Dialect {
  let name = "tfm";
  let cppNamespace = "::gtp::tfm";
  let summary = "Transformer training, as a logical single-device program";
  let description = [{
    Value-semantics tensors of logical shape: the forward program that the
    importer writes, and the training step that `tfm-differentiate` derives
    from it. No mesh and no collective. Activations are `[batch, sequence,
    features]`, weights `[rows, columns]` as checkpoints hold them, tokens and
    labels `[batch, sequence]` of i32 with label -100 not counted.

    Ops describe themselves through three interfaces and passes know no more of
    them: *Placement* (which dimensions are one and the same and may be cut),
    *Cost* (flops, bytes, the resource that limits it) and, for forward ops,
    *Differentiable* (its vector-Jacobian product).
  }];
  let useDefaultAttributePrinterParser = 0;
}

class Tfm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tfm_Dialect, mnemonic, traits>;

#endif // GTP_DIALECTS_TFM_TFMDIALECT
