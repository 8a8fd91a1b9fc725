//===- TfmFusedOps.td - What gtp-fuse makes one kernel of -----------------===//
//
// Included by TfmOps.td. Each op means the ops of its summary, every value rounded
// to its type unless the op says otherwise; kernels of the same name do so in one
// pass over memory.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMFUSEDOPS
#define GTP_DIALECTS_TFM_TFMFUSEDOPS

class Tfm_FusedOp<string mnemonic, Trait cost = Tfm_CostInterface>
    : Tfm_StepOp<mnemonic, [cost]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_AddRmsNormOp : Tfm_FusedOp<"add_rms_norm"> {
  let summary = "`tfm.add` of two and the `tfm.rms_norm` of their sum";
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b, Tfm_Tensor:$weight, F64Attr:$eps,
                       UnitAttr:$unit_offset);
  let results = (outs Tfm_Tensor:$sum, Tfm_Tensor:$result);
}

def Tfm_AddLayerNormOp : Tfm_FusedOp<"add_layer_norm"> {
  let summary = "`tfm.add` of two and the `tfm.layer_norm` of their sum";
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b, Tfm_Tensor:$weight, F64Attr:$eps);
  let results = (outs Tfm_Tensor:$sum, Tfm_Tensor:$result);
}

def Tfm_RmsNormGradAddOp : Tfm_FusedOp<"rms_norm_grad_add"> {
  let summary = "`tfm.rms_norm_grad`, and the `tfm.add` of `residual` and its `dx`";
  let description = "`dx` is the sum.";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$weight,
                       Tfm_Tensor:$residual, F64Attr:$eps, UnitAttr:$unit_offset);
  let results = (outs Tfm_Tensor:$dx, Optional<Tfm_Tensor>:$dweight);
}

def Tfm_LayerNormGradAddOp : Tfm_FusedOp<"layer_norm_grad_add"> {
  let summary = "`tfm.layer_norm_grad`, and the `tfm.add` of `residual` and its `dx`";
  let description = "`dx` is the sum.";
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$weight,
                       Tfm_Tensor:$residual, F64Attr:$eps);
  let results = (outs Tfm_Tensor:$dx, Optional<Tfm_Tensor>:$dweight);
}

def Tfm_BiasGeluOp : Tfm_FusedOp<"bias_gelu"> {
  let summary = "`tfm.add_bias` and the `tfm.gelu` of its result";
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$bias, UnitAttr:$approximate);
  let results = (outs Tfm_Tensor:$sum, Tfm_Tensor:$result);
}

def Tfm_LinearBiasOp : Tfm_FusedOp<"linear_bias",
                                   DeclareOpInterfaceMethods<Tfm_CostInterface, ["getCost"]>> {
  let summary = "`tfm.linear` and the `tfm.add_bias` of its result";
  let description = "The bias is added to the product before that is rounded.";
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$w, Tfm_Tensor:$bias);
  let results = (outs Tfm_Tensor:$result);
}

def Tfm_CrossEntropyInPlaceOp : Tfm_FusedOp<"cross_entropy_in_place"> {
  let summary = "`tfm.cross_entropy` and `tfm.cross_entropy_grad`";
  let description = [{
    The gradient takes the memory of the logits, where nothing else reads those.
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Ids:$labels, Tfm_Count:$count, Tfm_Scalar:$dloss,
                       UnitAttr:$sequence_mean);
  let results = (outs Tfm_Tensor:$dlogits, Tfm_Scalar:$loss);
}

#endif // GTP_DIALECTS_TFM_TFMFUSEDOPS
