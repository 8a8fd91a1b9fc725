//===- PlanDialect.td - When, and at which address ------------------------===//

#ifndef GTP_DIALECTS_PLAN_PLANDIALECT
#define GTP_DIALECTS_PLAN_PLANDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/Properties.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::gtp::planir";
  let summary = "One static program a rank: streams, events, buffers, addresses";
  let description = [{
    One to one with `plan.proto`, which explains the fields. A `plan.program` holds
    buffers, parameters, communicators, streams and regions; a region holds
    kernels, collectives, copies and fills in issue order. Buffers are SSA values
    and operations touch views of them.

    What must complete before an operation starts is a list of tokens (`after`)
    until `plan-insert-events` turns them into the fewest events; operations of
    one stream run in their order without either. Operations carry their layer in
    their location. Durations are nanoseconds, sizes and offsets bytes.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Plan_Type<string name, string typeMnemonic> : TypeDef<Plan_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Plan_Buffer : Plan_Type<"Buffer", "buffer"> {
  let summary = "bytes at one place of the arena";
}

def Plan_Token : Plan_Type<"Token", "token"> {
  let summary = "completion of an operation";
}

//===----------------------------------------------------------------------===//
// Enums. Values are those of plan.proto.
//===----------------------------------------------------------------------===//

class Plan_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::gtp::planir";
}

def Plan_BufferKind : Plan_Enum<"BufferKind", "how long a buffer lives", [
    I32EnumCase<"Transient", 0, "transient">, I32EnumCase<"Persistent", 1, "persistent">,
    I32EnumCase<"Input", 2, "input">, I32EnumCase<"Output", 3, "output">]>;
def Plan_Init : Plan_Enum<"Init", "how a parameter starts", [
    I32EnumCase<"Normal", 0, "normal">, I32EnumCase<"Ones", 1, "ones">,
    I32EnumCase<"Zeros", 2, "zeros">]>;
def Plan_Purpose : Plan_Enum<"Purpose", "what a communicator is for", [
    I32EnumCase<"Gather", 0, "gather">, I32EnumCase<"Reduce", 1, "reduce">,
    I32EnumCase<"Scalar", 2, "scalar">]>;
def Plan_CtaPolicy : Plan_Enum<"CtaPolicy", "how many thread blocks a communicator takes", [
    I32EnumCase<"Default", 0, "default">, I32EnumCase<"Efficiency", 1, "efficiency">,
    I32EnumCase<"Zero", 2, "zero">]>;
def Plan_StreamKind : Plan_Enum<"StreamKind", "what runs on a stream", [
    I32EnumCase<"Compute", 0, "compute">, I32EnumCase<"Gather", 1, "gather">,
    I32EnumCase<"Reduce", 2, "reduce">, I32EnumCase<"Copy", 3, "copy">]>;
def Plan_ProgramKind : Plan_Enum<"ProgramKind", "what a program is for", [
    I32EnumCase<"TrainStep", 0, "train_step">, I32EnumCase<"Eval", 1, "eval">]>;
def Plan_RegionKind : Plan_Enum<"RegionKind", "part of a step", [
    I32EnumCase<"Once", 0, "once">, I32EnumCase<"Body", 1, "body">,
    I32EnumCase<"Update", 2, "update">, I32EnumCase<"Drain", 3, "drain">]>;
def Plan_CollectiveKind : Plan_Enum<"CollectiveKind", "kind of a collective", [
    I32EnumCase<"AllGather", 0, "all_gather">, I32EnumCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumCase<"AllReduce", 2, "all_reduce">, I32EnumCase<"AllToAll", 3, "all_to_all">]>;
def Plan_Reduce : Plan_Enum<"Reduce", "reduction", [
    I32EnumCase<"Sum", 0, "sum">, I32EnumCase<"Max", 1, "max">]>;
def Plan_Order : Plan_Enum<"Order", "order of a sum", [
    I32EnumCase<"Flat", 0, "flat">, I32EnumCase<"Ring", 1, "ring">]>;
def Plan_Transport : Plan_Enum<"Transport", "how bytes move", [
    I32EnumCase<"Auto", 0, "auto">, I32EnumCase<"CopyEngine", 1, "copy_engine">,
    I32EnumCase<"Symmetric", 2, "symmetric">, I32EnumCase<"RingTransport", 3, "ring">,
    I32EnumCase<"Host", 4, "host">, I32EnumCase<"Pairwise", 5, "pairwise">]>;
def Plan_When : Plan_Enum<"When", "iterations that run an operation", [
    I32EnumCase<"Always", 0, "always">, I32EnumCase<"First", 1, "first">,
    I32EnumCase<"NotFirst", 2, "not_first">, I32EnumCase<"Last", 3, "last">,
    I32EnumCase<"NotLast", 4, "not_last">]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Plan_MeshAttr : Plan_Attr<"Mesh", "mesh"> {
  let summary = "axes in rank order, the last varies fastest";
  let description = "Example: `#plan.mesh<dp = 2, gtp = 4>`.";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$degrees);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Product of all degrees.
    int64_t getRanks() const;
  }];
}

def Plan_SegmentAttr : Plan_Attr<"Segment", "segment"> {
  let summary = "a named part of a dimension";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
}

def Plan_DimAttr : Plan_Attr<"Dim", "dim"> {
  let summary = "a dimension of a logical value and the axes that cut it";
  let description = [{
    Axes are indices into the mesh. Compute axes cut each segment, storage axes what
    is left at a granule; cuts nest.
  }];
  let parameters = (ins "int64_t":$logical,
      OptionalArrayRefParameter<"::gtp::planir::SegmentAttr">:$segments,
      OptionalArrayRefParameter<"int64_t">:$compute,
      OptionalArrayRefParameter<"int64_t">:$storage,
      DefaultValuedParameter<"int64_t", "0">:$granule);
  let assemblyFormat = [{
    `<` $logical (`segments` `[` $segments^ `]`)? (`compute` `[` $compute^ `]`)?
    (`storage` `[` $storage^ `]`)? (`granule` $granule^)? `>`
  }];
}

def Plan_LayoutAttr : Plan_Attr<"Layout", "layout"> {
  let summary = "placement of a parameter's buffers";
  let description = "Example: `#plan.layout<[<64 storage [1] granule 4>, <32>]>`.";
  let parameters = (ins OptionalArrayRefParameter<"::gtp::planir::DimAttr">:$dims);
  let assemblyFormat = "`<` (`[` $dims^ `]`)? `>`";
}

def Plan_ViewAttr : Plan_Attr<"View", "view"> {
  let summary = "what an operation touches of a buffer";
  let description = [{
    Rows (all dimensions but the last) of elements at
    `offset + iteration * iteration_stride + sum(stride * coordinate of axis)`, `pitch`
    elements apart (0: dense). `rank_strides` are pairs of axis and stride.

    Example: `<f32[8x64], offset 256, pitch 128, iteration 4096, ranks [1, 512], accumulate>`
  }];
  let parameters = (ins "::mlir::Type":$dtype, ArrayRefParameter<"int64_t">:$dims,
                        "int64_t":$offset, "int64_t":$pitch, "int64_t":$iterationStride,
                        ArrayRefParameter<"int64_t">:$rankStrides, "bool":$accumulate);
  let builders = [AttrBuilder<(ins "::mlir::Type":$dtype, "::llvm::ArrayRef<int64_t>":$dims,
                                   CArg<"int64_t", "0">:$offset, CArg<"int64_t", "0">:$pitch), [{
    return $_get($_ctxt, dtype, dims, offset, pitch, 0, ::llvm::ArrayRef<int64_t>(), false);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getElementBytes() const;
    int64_t getElements() const;
    bool isDense() const;
    /// Bytes from the first to behind the last element of one iteration and rank.
    int64_t getExtent() const;
    /// The same view, writing or adding.
    ViewAttr withAccumulate(bool accumulate) const;
    /// Where it is, and how it moves, without what is there.
    bool samePlace(ViewAttr other) const;
  }];
}

def Plan_ViewArrayAttr : TypedArrayAttrBase<Plan_ViewAttr, "views">;

def Plan_NonNegative : ConfinedProp<I64Prop, CPred<"$_self >= 0">, "non-negative">;
def Plan_Positive : ConfinedProp<I64Prop, CPred<"$_self > 0">, "positive">;

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, traits>;

#endif // GTP_DIALECTS_PLAN_PLANDIALECT
