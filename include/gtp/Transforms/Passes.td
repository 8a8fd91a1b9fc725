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
    Tied parameters, and parameters of different element types or initial values,
    stay as they are.
  }];
  let dependentDialects = ["::gtp::tfm::TfmDialect"];
}

def TfmDifferentiatePass : Pass<"tfm-differentiate", "::mlir::ModuleOp"> {
  let summary = "derives the training step from the forward program";
  let description = [{
    Replaces `@forward(tokens, labels, count) -> loss` by `@train_step`: state in,
    state out, each state result tied to its argument by `tfm.tied_to`, then the
    loss, the gradients' global norm before clipping and the number of counted
    labels. `tfm.model`'s `microbatches` is the size of dimension 0 of tokens and
    labels; the sums over them are the results of `tfm.microbatches`.

    A parameter has its weight in its own type; when `state-dtype` differs, a
    master copy in that type; and the optimizer's states in that type. Every
    parameter is trained: one that the loss does not depend on is an error.
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
           "element type of master weights and optimizer states: f32, bf16 or "
           "f64">,
  ];
  let dependentDialects = ["::gtp::tfm::TfmDialect",
                           "::mlir::func::FuncDialect"];
}

#endif // GTP_TRANSFORMS_PASSES
