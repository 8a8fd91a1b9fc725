//===- TfmOps.td - Operations of the logical program ----------------------===//
//
// Three groups: structure, forward ops, and the ops of the training step that
// differentiation makes. Every op has its meaning under its name; kernels of the
// same name implement it (include/gtp/Plan/KernelRegistry.h).
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

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

class Tfm_ForwardOp<string mnemonic, list<Trait> traits = []>
    : Tfm_ComputeOp<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<Tfm_DifferentiableInterface>])> {
  let hasVerifier = 1;
}

def Tfm_EmbeddingOp : Tfm_ForwardOp<"embedding", [Tfm_CostInterface]> {
  let summary = "rows of a table";
  let description = "`result[b,t,:] = table[ids[b,t],:]`.";
  let arguments = (ins Tfm_Ids:$ids, Tfm_Tensor:$table);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

def Tfm_RmsNormOp : Tfm_ForwardOp<"rms_norm", [Tfm_CostInterface]> {
  let summary = "root-mean-square normalization of groups of features";
  let description = [{
    With D the size of `weight`, every group of D neighbouring features g of `x`:
    `g / sqrt(mean(g*g) + eps) * weight`. Statistics in float32 or wider. One group
    is the usual norm; a head each is the q/k norm of qwen3. With `unit_offset` the
    factor is `1 + weight`.
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$weight, F64Attr:$eps, UnitAttr:$unit_offset);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Tfm_LayerNormOp : Tfm_ForwardOp<"layer_norm", [Tfm_CostInterface]> {
  let summary = "normalization of groups of features to mean 0 and variance 1";
  let description = [{
    Groups as in `tfm.rms_norm`: `(g - mean(g)) / sqrt(var(g) + eps) * weight` with the
    variance over D (Ba et al. 2016). Its bias is a `tfm.add_bias` of its own.
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$weight, F64Attr:$eps);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Tfm_AddBiasOp : Tfm_ForwardOp<"add_bias", [Tfm_CostInterface]> {
  let summary = "`result[...,i] = x[...,i] + bias[i]`";
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$bias);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x `,` $bias attr-dict `:` functional-type(operands, results)";
}

def Tfm_DocumentStartsOp : Tfm_ComputeOp<"document_starts", [Tfm_CostInterface]> {
  let summary = "where the document of each token starts";
  let description = [{
    A sequence holds documents one behind the other; the token `separator` is the last
    of each. `result[b,t]` is the index along the sequence of the first token of t's
    document: t itself at the start of the sequence and behind a separator, else
    `result[b,t-1]`. What precedes the sequence is not known, so a document that it
    starts in the middle of starts at 0.

    Ops with positions take it as `starts`: the position of t is then
    `t - starts[b,t]`, and attention sees nothing before `starts[b,t]`. The separator is
    the `document_separator` of `tfm.model`, which says that the label of a separator is
    not counted.

    Example:
    ```mlir
    %starts = tfm.document_starts %tokens {separator = 2}
        : (tensor<8x128xi32>) -> tensor<8x128xi32>
    ```
  }];
  let arguments = (ins Tfm_Ids:$tokens, ConfinedAttr<I64Attr, [IntNonNegative]>:$separator);
  let results = (outs Tfm_Ids:$starts);
  let assemblyFormat = "$tokens attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Tfm_AddPositionsOp : Tfm_ForwardOp<"add_positions", [Tfm_CostInterface]> {
  let summary = "learned position embedding: `result[b,t,:] = x[b,t,:] + table[t,:]`";
  let description = [{
    The position t is the index along the sequence, or from the start of the document
    (see `tfm.document_starts`); rows of the table behind the sequence's length are not
    used.
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$table, Optional<Tfm_Ids>:$starts);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x `,` $table (`,` $starts^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_LinearOp : Tfm_ForwardOp<"linear", [DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>]> {
  let summary = "`x wᵀ`";
  let description = "`result[...,n] = sum_k x[...,k] * w[n,k]`, accumulated in float32.";
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$w);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x `,` $w attr-dict `:` functional-type(operands, results)";
}

def Tfm_RopeOp : Tfm_ForwardOp<"rope", [Tfm_CostInterface]> {
  let summary = "rotary position embedding";
  let description = [{
    Each head of `head_dim` features at position t (the index along the sequence, or
    from the start of the document, see `tfm.document_starts`): with n the number of frequencies, feature i < n pairs with i + n and turns by
    t * frequencies[i] (rotate-half, Su et al. 2021 as Hugging Face lays it out);
    by the negative angle when `inverse`. Features behind 2n stay as they are.
  }];
  let arguments = (ins Tfm_Tensor:$x, Optional<Tfm_Ids>:$starts, Tfm_Positive:$head_dim,
                       DenseF64ArrayAttr:$frequencies, UnitAttr:$inverse);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x (`,` $starts^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_AttentionOp : Tfm_ForwardOp<"attention", [DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>]> {
  let summary = "scaled dot-product attention with grouped key and value heads";
  let description = [{
    Query head h attends with key and value head `h / (heads / kv_heads)`:
    `softmax(scale * q kᵀ) v` over positions s <= t when `causal`, and of those only
    over the last `window`, t itself included, when it is not 0, and over those from
    `starts[b,t]` on where it is given (see `tfm.document_starts`). A `softcap` c that is
    not 0 makes `c tanh(score / c)` of each score. `lse` is the
    logarithm of the softmax's denominator, `[batch, heads, sequence]`, kept
    for the gradient.
  }];
  let arguments = (ins Tfm_Tensor:$q, Tfm_Tensor:$k, Tfm_Tensor:$v,
                       Optional<Tfm_Ids>:$starts, Tfm_Positive:$heads,
                       Tfm_Positive:$kv_heads, F64Attr:$scale, BoolAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap);
  let results = (outs Tfm_Tensor:$result, Tfm_Tensor:$lse);
  let assemblyFormat = "$q `,` $k `,` $v (`,` $starts^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_SwigluOp : Tfm_ForwardOp<"swiglu", [Tfm_CostInterface]> {
  let summary = "`silu(gate) * up`";
  let arguments = (ins Tfm_Tensor:$gate, Tfm_Tensor:$up);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` functional-type(operands, results)";
}

def Tfm_GeluOp : Tfm_ForwardOp<"gelu", [Tfm_CostInterface]> {
  let summary = "`x Φ(x)`, Gaussian error linear unit";
  let description = [{
    Φ is the normal distribution function; with `approximate` it is
    `(1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2` (Hendrycks and Gimpel 2016).
  }];
  let arguments = (ins Tfm_Tensor:$x, UnitAttr:$approximate);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_SoftcapOp : Tfm_ForwardOp<"softcap", [Tfm_CostInterface]> {
  let summary = "`cap tanh(x / cap)`";
  let arguments = (ins Tfm_Tensor:$x, F64Attr:$cap);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_ScaleOp : Tfm_ForwardOp<"scale", [Tfm_CostInterface]> {
  let summary = "`factor x`";
  let arguments = (ins Tfm_Tensor:$x, F64Attr:$factor);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_MulOp : Tfm_ForwardOp<"mul", [Tfm_CostInterface]> {
  let summary = "product, element by element";
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` functional-type(operands, results)";
}

def Tfm_AddOp : Tfm_ForwardOp<"add", [Tfm_CostInterface]> {
  let summary = "sum of one or more tensors of one type";
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

def Tfm_SplitOp : Tfm_ForwardOp<"split", [Tfm_CostInterface]> {
  let summary = "pieces of the last dimension, in order";
  let arguments = (ins Tfm_Tensor:$x);
  let results = (outs Variadic<Tfm_Tensor>:$results);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_ConcatOp : Tfm_ForwardOp<"concat", [Tfm_CostInterface]> {
  let summary = "joins along the last dimension";
  let arguments = (ins Variadic<Tfm_Tensor>:$inputs);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

def Tfm_CastOp : Tfm_ForwardOp<"cast", [Tfm_CostInterface]> {
  let summary = "another element type, rounded to nearest even";
  let arguments = (ins Tfm_Tensor:$x);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_CrossEntropyOp : Tfm_ForwardOp<"cross_entropy", [Tfm_CostInterface]> {
  let summary = "mean cross entropy, over tokens or over sequences";
  let description = [{
    Sum over counted labels of `logsumexp(logits) - logits[label]`, divided by
    `max(1, count)`. `count` is the number of counted labels of the whole step,
    so the sum over microbatches is the mean over the step.

    With `sequence_mean` the sum of each sequence (the labels' last dimension) is
    divided by the number of its counted labels first, and `count` is the number of
    the step's sequences that have one (`tfm.count_labels` with `sequences`).
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Ids:$labels, Tfm_Count:$count,
                       UnitAttr:$sequence_mean);
  let results = (outs Tfm_Scalar:$loss);
  let assemblyFormat = "$logits `,` $labels `,` $count attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Training step
//===----------------------------------------------------------------------===//

class Tfm_StepOp<string mnemonic, list<Trait> traits = []>
    : Tfm_ComputeOp<mnemonic, traits> {
  let hasVerifier = 1;
}

def Tfm_EmbeddingGradOp : Tfm_StepOp<"embedding_grad", [Tfm_CostInterface]> {
  let summary = "gradient of the table: sums rows of `dy` by id";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Ids:$ids);
  let results = (outs Tfm_Tensor:$dtable);
  let assemblyFormat = "$dy `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Tfm_RmsNormGradOp : Tfm_StepOp<"rms_norm_grad", [Tfm_CostInterface]> {
  let summary = "gradients of `x` and, where it is trained, of the weight of `tfm.rms_norm`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$weight, F64Attr:$eps,
                       UnitAttr:$unit_offset);
  let results = (outs Tfm_Tensor:$dx, Optional<Tfm_Tensor>:$dweight);
  let assemblyFormat = "$dy `,` $x `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Tfm_LayerNormGradOp : Tfm_StepOp<"layer_norm_grad", [Tfm_CostInterface]> {
  let summary = "gradients of `x` and, where it is trained, of the weight of `tfm.layer_norm`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$weight, F64Attr:$eps);
  let results = (outs Tfm_Tensor:$dx, Optional<Tfm_Tensor>:$dweight);
  let assemblyFormat = "$dy `,` $x `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Tfm_BiasGradOp : Tfm_StepOp<"bias_grad", [Tfm_CostInterface]> {
  let summary = "gradient of the bias of `tfm.add_bias`: sums `dy` over all tokens";
  let arguments = (ins Tfm_Tensor:$dy);
  let results = (outs Tfm_Tensor:$dbias);
  let assemblyFormat = "$dy attr-dict `:` functional-type(operands, results)";
}

def Tfm_PositionsGradOp : Tfm_StepOp<"positions_grad", [Tfm_CostInterface]> {
  let summary = "gradient of the table of `tfm.add_positions`";
  let description = [{
    `dtable[p,:]` is the sum of `dy` over the tokens of position p; zero where there is
    none.
  }];
  let arguments = (ins Tfm_Tensor:$dy, Optional<Tfm_Ids>:$starts);
  let results = (outs Tfm_Tensor:$dtable);
  let assemblyFormat = "$dy (`,` $starts^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_GeluGradOp : Tfm_StepOp<"gelu_grad", [Tfm_CostInterface]> {
  let summary = "gradient of `tfm.gelu`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, UnitAttr:$approximate);
  let results = (outs Tfm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}

def Tfm_SoftcapGradOp : Tfm_StepOp<"softcap_grad", [Tfm_CostInterface]> {
  let summary = "gradient of `tfm.softcap`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, F64Attr:$cap);
  let results = (outs Tfm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}

def Tfm_LinearDgradOp : Tfm_StepOp<"linear_dgrad", [DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>]> {
  let summary = "gradient of `x`: `dy w`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$w);
  let results = (outs Tfm_Tensor:$dx);
  let assemblyFormat = "$dy `,` $w attr-dict `:` functional-type(operands, results)";
}

def Tfm_LinearWgradOp : Tfm_StepOp<"linear_wgrad", [DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>]> {
  let summary = "gradient of `w`: `dyᵀ x`, summed over all tokens";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x);
  let results = (outs Tfm_Tensor:$dw);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}

def Tfm_AttentionGradOp : Tfm_StepOp<"attention_grad", [DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>]> {
  let summary = "gradients of q, k and v of `tfm.attention`";
  let description = [{
    When `fast`, sums may run in any order, which need not be the same in the next run.
  }];
  let arguments = (ins Tfm_Tensor:$dout, Tfm_Tensor:$q, Tfm_Tensor:$k, Tfm_Tensor:$v,
                       Tfm_Tensor:$out, Tfm_Tensor:$lse, Optional<Tfm_Ids>:$starts,
                       Tfm_Positive:$heads, Tfm_Positive:$kv_heads, F64Attr:$scale, BoolAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F64Attr, "0.0">:$softcap, UnitAttr:$fast);
  let results = (outs Tfm_Tensor:$dq, Tfm_Tensor:$dk, Tfm_Tensor:$dv);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SwigluGradOp : Tfm_StepOp<"swiglu_grad", [Tfm_CostInterface]> {
  let summary = "gradients of `gate` and `up` of `tfm.swiglu`";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$gate, Tfm_Tensor:$up);
  let results = (outs Tfm_Tensor:$dgate, Tfm_Tensor:$dup);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_CrossEntropyGradOp : Tfm_StepOp<"cross_entropy_grad", [Tfm_CostInterface]> {
  let summary = "gradient of the logits of `tfm.cross_entropy`";
  let description = [{
    `dloss / max(1, count) * (softmax(logits) - onehot(label))` where the label is
    counted, else zero: 1/n is folded in here and nowhere else. With `sequence_mean`
    also divided by the number of counted labels of the sequence.
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Ids:$labels, Tfm_Count:$count, Tfm_Scalar:$dloss,
                       UnitAttr:$sequence_mean);
  let results = (outs Tfm_Tensor:$dlogits);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_CountLabelsOp : Tfm_StepOp<"count_labels", [Tfm_CostInterface]> {
  let summary = "number of counted labels, or of sequences that have one";
  let description = "Sequences, when `sequences` is given, lie along the last dimension.";
  let arguments = (ins Tfm_Ids:$labels, UnitAttr:$sequences);
  let results = (outs Tfm_Count:$count);
  let assemblyFormat = "$labels attr-dict `:` functional-type(operands, results)";
}

def Tfm_SumSquaresOp : Tfm_StepOp<"sum_squares", [Tfm_CostInterface]> {
  let summary = "sum of squares, accumulated in float64";
  let arguments = (ins Tfm_Tensor:$x);
  let results = (outs Tfm_Scalar:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Tfm_ClipScaleOp : Tfm_StepOp<"clip_scale", [Tfm_CostInterface]> {
  let summary = "global norm and the factor that clips to it";
  let description = [{
    `norm = sqrt(sum_squares)`; `scale = min(1, max_norm / (norm + 1e-6))`, or 1
    when `max_norm` is 0. When the norm is not finite, the factor is NaN, which makes
    the updates that read it change nothing.
  }];
  let arguments = (ins Tfm_Scalar:$sum_squares, F64Attr:$max_norm);
  let results = (outs Tfm_Scalar:$norm, Tfm_Scalar:$scale);
  let assemblyFormat = "$sum_squares attr-dict `:` functional-type(operands, results)";
}

/// `hyper` is [lr, weight decay, beta1, beta2, eps, 1-beta1^t, 1-beta2^t, 0].
/// `compute`, when there is one, is the published copy in the compute type.
def Tfm_AdamwOp : Tfm_StepOp<"adamw", [Tfm_CostInterface]> {
  let summary = "AdamW with decoupled decay";
  let description = [{
    With g = scale * gradient: `m' = b1 m + (1-b1) g`, `v' = b2 v + (1-b2) g²`,
    `w' = w - lr * (m'/bias1 / (sqrt(v'/bias2) + eps) + decay * w)`
    (Loshchilov and Hutter 2019). `compute` is w' in the compute type when that is not
    the master's, which then is the wider: to nearest, ties away from zero.
  }];
  let arguments = (ins Tfm_Tensor:$master, Tfm_Tensor:$m, Tfm_Tensor:$v, Tfm_Tensor:$gradient,
                       1DTensorOf<[F32]>:$hyper, Tfm_Scalar:$scale, UnitAttr:$decay);
  let results = (outs Tfm_Tensor:$new_master, Tfm_Tensor:$new_m, Tfm_Tensor:$new_v,
                      Optional<Tfm_Tensor>:$compute);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SgdOp : Tfm_StepOp<"sgd", [Tfm_CostInterface]> {
  let summary = "`w - lr * (scale * gradient + decay * w)`";
  let arguments = (ins Tfm_Tensor:$master, Tfm_Tensor:$gradient, 1DTensorOf<[F32]>:$hyper,
                       Tfm_Scalar:$scale, UnitAttr:$decay);
  let results = (outs Tfm_Tensor:$new_master, Optional<Tfm_Tensor>:$compute);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

/// A float32 master is the bfloat16 weight and a remainder: the 16 bits that are left.
def Tfm_AdamwSplitOp : Tfm_StepOp<"adamw_split", [Tfm_CostInterface]> {
  let summary = "AdamW on a float32 master in two halves";
  let description = [{
    `tfm.adamw` on the float32 whose bit pattern is that of `master`, 16 zeros behind,
    plus `remainder` as a signed number. `new_master` is the nearest bfloat16, ties
    away from zero, which is what `tfm.adamw` publishes, and `new_remainder` the
    difference of the bits: all of the float32 is kept.
  }];
  let arguments = (ins StaticShapeTensorOf<[BF16]>:$master, Tfm_Remainder:$remainder,
                       Tfm_Tensor:$m, Tfm_Tensor:$v, Tfm_Tensor:$gradient,
                       1DTensorOf<[F32]>:$hyper, Tfm_Scalar:$scale, UnitAttr:$decay);
  let results = (outs StaticShapeTensorOf<[BF16]>:$new_master, Tfm_Remainder:$new_remainder,
                      Tfm_Tensor:$new_m, Tfm_Tensor:$new_v);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SgdSplitOp : Tfm_StepOp<"sgd_split", [Tfm_CostInterface]> {
  let summary = "`tfm.sgd` on a float32 master in two halves, as in `tfm.adamw_split`";
  let arguments = (ins StaticShapeTensorOf<[BF16]>:$master, Tfm_Remainder:$remainder,
                       Tfm_Tensor:$gradient, 1DTensorOf<[F32]>:$hyper, Tfm_Scalar:$scale,
                       UnitAttr:$decay);
  let results = (outs StaticShapeTensorOf<[BF16]>:$new_master, Tfm_Remainder:$new_remainder);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_FullOp : Tfm_StepOp<"full", [Tfm_CostInterface]> {
  let summary = "a tensor of one value";
  let arguments = (ins F64Attr:$value);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

include "dialects/Tfm/TfmFusedOps.td"

#endif // GTP_DIALECTS_TFM_TFMOPS
