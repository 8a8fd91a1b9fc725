//===- Passes.td - Passes on tfm and gtp ----------------------------------===//
//
// In pipeline order. A pass's argument, its file and its test are one word.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TRANSFORMS_PASSES
#define GTP_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// tfm: the logical program
//===----------------------------------------------------------------------===//

def TfmOverridePass : Pass<"tfm-override", "::mlir::ModuleOp"> {
  let summary = "pins what is decided for single parameters";
  let description = [{
    Sets `frozen`, `replicated` and `prefetch` of the parameters that a regular
    expression finds in one of their checkpoint names (docs/overrides.md). First the two
    options, then the file, which counts more.

    ```mlir
    tfm.parameter @norm : tensor<64xf32> init "ones" tensors ["norm" = 64]
    ```
    becomes with `freeze=norm`
    ```mlir
    tfm.parameter @norm : tensor<64xf32> init "ones" tensors ["norm" = 64] frozen
    ```
  }];
  let options = [
    Option<"freeze", "freeze", "std::string", "\"\"",
           "expression that finds the parameters that are not trained">,
    Option<"replicate", "replicate", "std::string", "\"\"",
           "expression that finds the parameters that every rank holds whole">,
    Option<"overrides", "overrides", "std::string", "\"\"",
           "file of decisions for single parameters">,
  ];
  let dependentDialects = ["::gtp::tfm::TfmDialect"];
}

def TfmPackPass : Pass<"tfm-pack", "::mlir::ModuleOp"> {
  let summary = "joins linears that share an input";
  let description = [{
    Linears of one block and one input whose weights are parameters used nowhere
    else become one linear on one parameter, whose checkpoint tensors are theirs
    in order, and a `tfm.split` of its result: one gather and one product instead
    of three (q, k, v) or two (gate, up).

    ```mlir
    %q = tfm.linear %x, %wq
    %k = tfm.linear %x, %wk
    ```
    becomes
    ```mlir
    %qk = tfm.linear %x, %w     // @"q_proj|k_proj"
    %q, %k = tfm.split %qk
    ```
    Tied parameters stay as they are. Only parameters of one element type and initial
    value are joined, and of those only what is equally frozen, replicated and
    prefetched: all rows of a parameter share one fate.
  }];
  let dependentDialects = ["::gtp::tfm::TfmDialect"];
}

def TfmDifferentiatePass : Pass<"tfm-differentiate", "::mlir::ModuleOp"> {
  let summary = "derives the training step from the forward program";
  let description = [{
    Replaces `@forward(tokens, labels, count) -> loss` by `@train_step`: state in,
    state out, each state result tied to its argument by `tfm.tied_to`, then the
    loss, the gradients' global norm before clipping and the count that the loss was
    divided by. `tfm.model`'s `microbatches` is the size of dimension 0 of tokens and
    labels; the sums over them are the results of `tfm.microbatches`.

    A parameter has its weight in its own type; when `state-dtype` is wider, a
    master copy in that type; and the optimizer's states in that type. With `split`
    the master of a bf16 weight is a float32 in two halves, the weight and a
    `remainder` of 16 bits, and the states are float32. A parameter that
    is `frozen` has its weight and no more: an argument without a result. Gradients are
    those that trained parameters need; below the lowest of them there is no backward
    pass, and the norm counts them alone. A parameter that the loss does not depend on
    is an error.

    Beside it stands `@eval_step`, the same loss without a derivative: the weights,
    tokens and labels in, the loss and its count out.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"",
           "adamw or sgd">,
    Option<"clipNorm", "clip-norm", "double", "0",
           "global norm that gradients are clipped to; 0 is off">,
    Option<"gradDtype", "grad-dtype", "std::string", "\"\"",
           "element type of gradients of parameters: f32, bf16 or f64; the "
           "parameter's own when empty">,
    Option<"stateDtype", "state-dtype", "std::string", "\"f32\"",
           "element type of master weights and optimizer states: f32, bf16, f64 "
           "or split">,
    Option<"attentionBackward", "attention-backward", "std::string",
           "\"deterministic\"",
           "deterministic, or fast: sums of attention's gradients may run in "
           "any order">,
  ];
  let dependentDialects = ["::gtp::tfm::TfmDialect",
                           "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// gtp: the program of a rank
//===----------------------------------------------------------------------===//

def GtpPlacePass : Pass<"gtp-place", "::mlir::ModuleOp"> {
  let summary = "gives every value of the training step a placement";
  let description = [{
    Builds a new function in the place of each. Its arguments are placed by their
    role (`PlacementPolicy.h`); each op's rule then says which placements it needs
    and which its results have, and a `gtp.convert` stands where a value has
    another. Weights that rest in pieces are converted anew for each use; other
    conversions stand once, behind the definition. What a microbatch yields for an
    optimizer's update is converted to the placement of the updated parameter inside
    the region; other partial sums are reduced where they are needed.

    ```mlir
    %y = tfm.linear %x, %w : (tensor<8x4x64xf32>, tensor<96x64xf32>) -> tensor<8x4x96xf32>
    ```
    becomes
    ```mlir
    %full = gtp.convert %w : tensor<96x64xf32, #stored> -> tensor<96x64xf32, #whole>
    %y = tfm.linear %x, %full
        : (tensor<8x4x64xf32, #x>, tensor<96x64xf32, #whole>) -> tensor<8x4x96xf32, #y>
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"",
           "degrees of the axes in rank order, the last varies fastest: dp=2,gtp=4">,
  ];
  let dependentDialects = ["::gtp::dist::GtpDialect", "::gtp::tfm::TfmDialect"];
}

def GtpPartitionPass : Pass<"gtp-partition", "::mlir::func::FuncOp"> {
  let summary = "makes a placed function the program of one rank";
  let description = [{
    Types get the shapes of a rank, and conversions become collectives. A gather of an
    argument's shards becomes `gtp.materialize`: uses of one weight with no use of
    another between them are one interval and share it, right before the first use.
    Other conversions become the steps of `PlacementConversion.h`, in their place.

    Establishes: the function is `gtp.partitioned`, has no `gtp.convert`, and
    `gtp-verify-placements` holds.
  }];
  let options = [
    Option<"reduceDtype", "reduce-dtype", "std::string", "\"\"",
           "type in which tensors of rank 1 and more are reduced: f32 or bf16; their "
           "own when empty">,
  ];
  let dependentDialects = ["::gtp::dist::GtpDialect"];
}

def GtpFusePass : Pass<"gtp-fuse", "::mlir::func::FuncOp"> {
  let summary = "makes one kernel of ops that pass a value on through memory";
  let description = [{
    On the program of one rank, where every op is a kernel:

    | ops | become |
    |---|---|
    | `add` of two and the `rms_norm` or `layer_norm` of the sum | `add_rms_norm`, `add_layer_norm` |
    | `rms_norm_grad` or `layer_norm_grad` and the `add` of its `dx` to another value | `rms_norm_grad_add`, `layer_norm_grad_add` |
    | `cross_entropy` and `cross_entropy_grad` of logits that nothing else reads | `cross_entropy_in_place` |
    | `linear` and the `add_bias` of its result, which nothing else reads | `linear_bias` |
    | other `add_bias` and the `gelu` of its result | `bias_gelu` |

    Each value is rounded where it was, so the numbers stay the same; but `linear_bias`
    adds to the product before that is rounded: in bf16 one rounding in place of two, and
    the same in float32. The one op
    stands where the last of those it replaces could have stood, and only if no other
    use of their results lies before it.

    ```mlir
    %s = tfm.add %x, %y
    %n = tfm.rms_norm %s, %w
    ```
    becomes
    ```mlir
    %s, %n = tfm.add_rms_norm %x, %y, %w
    ```
  }];
  let options = [
    Option<"off", "off", "bool", "false", "leave every op as it is">,
  ];
  let dependentDialects = ["::gtp::tfm::TfmDialect"];
}

def GtpPrefetchPass : Pass<"gtp-prefetch", "::mlir::func::FuncOp"> {
  let summary = "makes collectives asynchronous";
  let description = [{
    Applies the decisions attached to collectives of a partitioned function.
    `gtp.materialize` becomes a `gtp.prefetch` behind the op at position `gtp.trigger`
    of the block (its own position without one), a `gtp.await` before the first use
    and a `gtp.release` behind the last. Reductions and other gathers become a
    prefetch in their place, an await before the first use, and a release of their
    operand: before the op at position `gtp.release_before`, else behind the await.
    Gathers with one trigger keep their order.
  }];
  let options = [
    Option<"sync", "sync", "bool", "false",
           "leave every collective that is not gtp.pinned as it is, and drop the "
           "decisions">,
  ];
  let dependentDialects = ["::gtp::dist::GtpDialect"];
}

def GtpVerifyPlacementsPass : Pass<"gtp-verify-placements", "::mlir::func::FuncOp"> {
  let summary = "checks that every op is placed by its rule";
  let description = [{
    What `gtp-place` and `gtp-partition` establish (`PlacementVerification.h`); both run
    it at their end.
  }];
}

#endif // GTP_TRANSFORMS_PASSES
