//===- PlanOps.td - Operations of the plan dialect ------------------------===//

#ifndef GTP_DIALECTS_PLAN_PLANOPS
#define GTP_DIALECTS_PLAN_PLANOPS

include "dialects/Plan/PlanDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [
    IsolatedFromAbove, Symbol, SymbolTable, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "a plan and its first program, the training step";
  let description = [{
    Inputs, outputs and regions at the top are the training step's. A `plan.subprogram` is
    another program of the plan.

    `model`, `numerics`, `provenance` and `claims` hold the fields of the messages of
    those names, under those names. `stats` holds what else passes measured, for `--stats`.

    Example:
    ```mlir
    plan.program @train_step mesh <dp = 1, gtp = 2> arena 4096 {
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_MeshAttr:$mesh,
                       DefaultValuedProp<I64Prop, "0">:$arena,
                       OptionalAttr<DictionaryAttr>:$model, OptionalAttr<DictionaryAttr>:$numerics,
                       OptionalAttr<DictionaryAttr>:$provenance, OptionalAttr<DictionaryAttr>:$claims,
                       OptionalAttr<DictionaryAttr>:$stats);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `mesh` $mesh (`arena` $arena^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Plan_SubprogramOp : Plan_Op<"subprogram", [
    HasParent<"ProgramOp">, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "another program over the same arena";
  let description = [{
    Programs never run together: each starts after all of another has ended. So all see
    the plan's persistent buffers, and what is a program's own shares its memory with the
    others'. Buffers that only this program touches stand inside.

    Example:
    ```mlir
    plan.subprogram eval {
      %logits = plan.buffer transient 4096 "logits" at 256
      plan.input "tokens" %tokens
      plan.output "loss" %loss
      plan.region body { ... }
    }
    ```
  }];
  let arguments = (ins EnumProp<Plan_ProgramKind>:$kind);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_BufferOp : Plan_Op<"buffer", [
    ParentOneOf<["ProgramOp", "SubprogramOp"]>, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a piece of the arena";
  let description = [{
    Two buffers are two, however alike: nothing may merge them.
    `offset` is absent until `plan-assign-memory`, then a multiple of 256.

    Example: `%b = plan.buffer transient 4096 "layers.0.mlp" at 256`
  }];
  let arguments = (ins EnumProp<Plan_BufferKind>:$kind,
                       Plan_NonNegative:$size, DefaultValuedProp<StringProp, "\"\"">:$name,
                       OptionalProp<I64Prop>:$offset);
  let results = (outs Res<Plan_Buffer, "", [MemAlloc]>:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$kind $size ($name^)? (`at` $offset^)? attr-dict";
}

def Plan_ParameterOp : Plan_Op<"parameter", [
    Symbol, HasParent<"ProgramOp">, AttrSizedOperandSegments]> {
  let summary = "a logical weight and the buffers of its shards";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape, Plan_LayoutAttr:$layout,
                       EnumProp<Plan_Init>:$init, StrArrayAttr:$tensor_names,
                       DenseI64ArrayAttr:$tensor_rows,
                       OptionalAttr<DenseI64ArrayAttr>:$tensor_layouts,
                       OptionalAttr<StrArrayAttr>:$tied,
                       Plan_NonNegative:$uses, UnitProp:$decay, UnitProp:$frozen,
                       Plan_Buffer:$compute, Optional<Plan_Buffer>:$master,
                       Optional<Plan_Buffer>:$remainder,
                       Variadic<Plan_Buffer>:$states, Optional<Plan_Buffer>:$gradient);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $sym_name $shape $layout $init `uses` $uses (`decay` $decay^)? (`frozen` $frozen^)?
    `tensors` $tensor_names $tensor_rows (`layouts` $tensor_layouts^)? (`tied` $tied^)?
    `compute` $compute (`master` $master^)? (`remainder` $remainder^)?
    (`states` $states^)? (`gradient` $gradient^)? attr-dict
  }];
}

def Plan_CommunicatorOp : Plan_Op<"communicator", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "the ranks that agree on every coordinate but those of its axes";
  let arguments = (ins SymbolNameAttr:$sym_name, EnumProp<Plan_Purpose>:$purpose,
                       DenseI64ArrayAttr:$axes,
                       DefaultValuedProp<EnumProp<Plan_CtaPolicy>, "::gtp::planir::CtaPolicy::Default">:$cta_policy,
                       DefaultValuedProp<I64Prop, "0">:$min_ctas, DefaultValuedProp<I64Prop, "0">:$max_ctas,
                       DefaultValuedProp<I64Prop, "0">:$priority,
                       UnitProp:$needs_window, UnitProp:$spans_nodes);
  let assemblyFormat = [{
    $sym_name $purpose `axes` $axes (`cta_policy` $cta_policy^)? (`min_ctas` $min_ctas^)?
    (`max_ctas` $max_ctas^)? (`priority` $priority^)? (`window` $needs_window^)?
    (`spans_nodes` $spans_nodes^)? attr-dict
  }];
}

def Plan_StreamOp : Plan_Op<"stream", [HasParent<"ProgramOp">]> {
  let summary = "a queue of operations; operations name it by its position";
  let arguments = (ins EnumProp<Plan_StreamKind>:$kind, DefaultValuedProp<I64Prop, "0">:$priority);
  let assemblyFormat = "$kind (`priority` $priority^)? attr-dict";
}

def Plan_InputOp : Plan_Op<"input", [ParentOneOf<["ProgramOp", "SubprogramOp"]>]> {
  let summary = "a buffer that the runtime writes before a run of the program";
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer);
  let assemblyFormat = "$name $buffer attr-dict";
}

def Plan_OutputOp : Plan_Op<"output", [ParentOneOf<["ProgramOp", "SubprogramOp"]>]> {
  let summary = "a buffer that the runtime reads after a run of the program";
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer);
  let assemblyFormat = "$name $buffer attr-dict";
}

def Plan_RegionOp : Plan_Op<"region", [
    ParentOneOf<["ProgramOp", "SubprogramOp"]>, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "operations in issue order, run `repeat` times";
  let description = [{
    Starts after, and ends in, a join of all streams, and so does each iteration.
    `events` is the number of events its operations record.
  }];
  let arguments = (ins EnumProp<Plan_RegionKind>:$kind,
                       DefaultValuedProp<Plan_Positive, "1">:$repeat,
                       DefaultValuedProp<I64Prop, "0">:$events);
  let regions = (region SizedRegion<1>:$body);
  let hasRegionVerifier = 1;
  let assemblyFormat = "$kind (`repeat` $repeat^)? (`events` $events^)? attr-dict-with-keyword $body";
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

def Plan_StepInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::gtp::planir";
  let description = [{
    What kernels, collectives, copies and fills have in common: a stream, views of
    buffers, and what must complete before they start.
  }];
  let methods = [
    InterfaceMethod<"Position of the stream.", "int64_t", "getStream">,
    InterfaceMethod<"Buffers touched, one a view.", "::mlir::OperandRange", "getBuffers">,
    InterfaceMethod<"Views of the buffers.", "::mlir::ArrayAttr", "getViews">,
    InterfaceMethod<"Operations that complete before this one starts.",
                    "::mlir::OperandRange", "getAfter">,
    InterfaceMethod<"The same, to change.", "::mlir::MutableOperandRange", "getAfterMutable">,
    InterfaceMethod<"Completion of this one.", "::mlir::Value", "getToken", (ins),
                    "", "return $_op->getResult(0);">,
    InterfaceMethod<"Events it waits for.", "::llvm::ArrayRef<int64_t>", "getWaits">,
    InterfaceMethod<"Sets them.", "void", "setWaits", (ins "::llvm::ArrayRef<int64_t>":$events)>,
    InterfaceMethod<"Event that it records.", "::std::optional<int64_t>", "getEvent">,
    InterfaceMethod<"Sets it.", "void", "setEvent", (ins "::std::optional<int64_t>":$event)>,
    InterfaceMethod<"Predicted time in nanoseconds.", "int64_t", "getDuration">,
    InterfaceMethod<"Iterations that run it.", "::gtp::planir::When", "getWhen">,
    InterfaceMethod<"How it touches view `index`.", "::gtp::plan::Access", "getAccess",
                    (ins "unsigned":$index)>,
  ];
  let verify = "return ::gtp::planir::verifyStep(::llvm::cast<StepOpInterface>($_op));";
  let verifyWithRegions = 0;
}

class Plan_StepOp<string mnemonic, dag own> : Plan_Op<mnemonic, [
    HasParent<"RegionOp">, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    Plan_StepInterface]> {
  dag common = (ins Variadic<Plan_Buffer>:$buffers, Plan_ViewArrayAttr:$views,
                    Variadic<Plan_Token>:$after, Plan_NonNegative:$stream,
                    DefaultValuedProp<IntArrayProp<I64Prop>, "::llvm::ArrayRef<int64_t>{}",
                                      "::llvm::SmallVector<int64_t>{}">:$waits,
                    OptionalProp<I64Prop>:$event,
                    DefaultValuedProp<I64Prop, "0">:$duration,
                    DefaultValuedProp<EnumProp<Plan_When>, "::gtp::planir::When::Always">:$when);
  let arguments = !con(own, common);
  let results = (outs Plan_Token:$token);
  let hasVerifier = 1;
  string accesses = "::gtp::plan::Access getAccess(unsigned index);";
  let extraClassDeclaration = accesses;
  string tail = [{
    `stream` $stream (`after` $after^)? (`waits` $waits^)? (`event` $event^)?
    (`time` $duration^)? (`when` $when^)? attr-dict
  }];
}

def Plan_KernelOp : Plan_StepOp<"kernel", (ins
    StrAttr:$name, OptionalAttr<FlatSymbolRefAttr>:$parameter,
    OptionalAttr<FlatSymbolRefAttr>:$second_parameter,
    OptionalAttr<DictionaryAttr>:$settings, DefaultValuedProp<StringProp, "\"\"">:$algorithm,
    DefaultValuedProp<I64Prop, "0">:$sm_target)> {
  let summary = "a call of a registered kernel";
  let description = [{
    The kernel registry gives operands, accesses, attributes and meaning. Attributes
    are f64, i64 or lists of f64. A kernel that reads two weights names the parameters
    of both: `@head.weight and @head.bias`.

    Example:
    ```mlir
    %t = plan.kernel "linear" @head.weight(%x <f32[8x64]>, %w <f32[99x64]>, %y <f32[8x99]>)
      stream 0 after %gathered time 1200
    ```
  }];
  let assemblyFormat = "$name ($parameter^ (`and` $second_parameter^)?)? `` custom<Views>($buffers, $views)"
    "(`with` $settings^)? (`algorithm` $algorithm^)? (`sms` $sm_target^)?" # tail;
}

def Plan_CollectiveOp : Plan_StepOp<"collective", (ins
    EnumProp<Plan_CollectiveKind>:$kind, FlatSymbolRefAttr:$communicator,
    OptionalAttr<FlatSymbolRefAttr>:$parameter, TypeAttr:$wire, TypeAttr:$accumulation,
    DefaultValuedProp<EnumProp<Plan_Reduce>, "::gtp::planir::Reduce::Sum">:$reduce,
    DefaultValuedProp<EnumProp<Plan_Order>, "::gtp::planir::Order::Flat">:$order,
    DefaultValuedProp<EnumProp<Plan_Transport>, "::gtp::planir::Transport::Auto">:$transport,
    DefaultValuedProp<I64Prop, "0">:$ctas, DefaultValuedProp<I64Prop, "0">:$chunk_bytes)> {
  let summary = "a collective on equal counts";
  let description = [{
    Touches its sources, then as many destinations, one pair a coalesced member; then,
    where the transport needs it, scratch.

    Example:
    ```mlir
    %t = plan.collective all_gather @gather on @norm.weight(%shard <f32[4]>, %full <f32[8]>)
      wire f32 accumulate f32 stream 1
    ```
  }];
  let assemblyFormat = "$kind $communicator (`on` $parameter^)? `` custom<Views>($buffers, $views)"
    "`wire` $wire `accumulate` $accumulation (`reduce` $reduce^)? (`order` $order^)?"
    "(`transport` $transport^)? (`ctas` $ctas^)? (`chunk` $chunk_bytes^)?" # tail;
  let extraClassDeclaration = accesses # [{
    unsigned getMembers() { return getBuffers().size() / 2; }
    bool hasScratch() { return getBuffers().size() % 2 == 1; }
  }];
}

def Plan_CopyOp : Plan_StepOp<"copy", (ins)> {
  let summary = "copies its first view to its second";
  let assemblyFormat = "`` custom<Views>($buffers, $views)" # tail;
}

def Plan_FillOp : Plan_StepOp<"fill", (ins DefaultValuedProp<I64Prop, "0">:$byte)> {
  let summary = "sets every byte of its view";
  let assemblyFormat = "($byte^)? `` custom<Views>($buffers, $views)" # tail;
}

#endif // GTP_DIALECTS_PLAN_PLANOPS
