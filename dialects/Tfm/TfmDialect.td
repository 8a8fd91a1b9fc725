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

    Attributes on other ops:
    - `tfm.model` (module, dictionary): what the importer says of the model and the
      batch; its integers are i64 and not negative. With `document_separator` the label
      of every token of that id is not counted: it would be the next document's first.
    - `tfm.arg` (argument of the training step): weight, master, state, tokens, labels
      or hyper.
    - `tfm.parameter` (argument of the training step, symbol): the parameter it
      belongs to.
    - `tfm.state` (argument of the training step): which state of the optimizer, m or v.
    - `tfm.tied_to` (result of the training step, i64): the argument whose next value
      it is, of the same type.
    - `tfm.result` (result of the training step): loss, grad_norm or count.
  }];
  let useDefaultAttributePrinterParser = 0;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Tfm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tfm_Dialect, mnemonic, traits>;

#endif // GTP_DIALECTS_TFM_TFMDIALECT
