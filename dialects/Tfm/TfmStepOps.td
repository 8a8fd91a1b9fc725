//===- TfmStepOps.td - What differentiation adds to a model ---------------===//
//
// The gradients of TfmForwardOps.td, clipping and the optimizers. Included by
// TfmOps.td, which defines what they are written in.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMSTEPOPS
#define GTP_DIALECTS_TFM_TFMSTEPOPS

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

#endif // GTP_DIALECTS_TFM_TFMSTEPOPS
