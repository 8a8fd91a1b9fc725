//===- TfmForwardOps.td - Operations of a model ---------------------------===//
//
// Included by TfmOps.td, which defines what they are written in.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMFORWARDOPS
#define GTP_DIALECTS_TFM_TFMFORWARDOPS

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

#endif // GTP_DIALECTS_TFM_TFMFORWARDOPS
