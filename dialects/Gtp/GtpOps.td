//===- GtpOps.td - Conversions between placements -------------------------===//
//
// Three groups: the logical conversion, the steps it becomes on ranks, and their
// asynchronous form.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPOPS
#define GTP_DIALECTS_GTP_GTPOPS

include "dialects/Gtp/GtpDialect.td"
include "dialects/Gtp/GtpEnums.td"
include "dialects/Gtp/GtpAttrs.td"
include "dialects/Gtp/GtpTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Gtp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Gtp_Dialect, mnemonic, traits>;

def Gtp_Dim : ConfinedAttr<I64Attr, [IntNonNegative]>;
def Gtp_Interval : ConfinedAttr<I64Attr, [IntNonNegative]>;

/// A pure op from one placed tensor to another of the same logical value.
class Gtp_ConversionOp<string mnemonic, list<Trait> traits = []>
    : Gtp_Op<mnemonic, !listconcat([Pure], traits)> {
  let results = (outs Gtp_Tensor:$result);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Placed
//===----------------------------------------------------------------------===//

def Gtp_ConvertOp : Gtp_ConversionOp<"convert"> {
  let summary = "the same value under another placement";
  let description = [{
    What `gtp-place` writes where placements do not match; `gtp-partition` turns it into
    collectives.

    Constraints:
    - C1: both types have the same elements, mesh and logical shape.
    - C2: both types have logical shapes.

    Example:
    ```mlir
    %g = gtp.convert %dw : tensor<257x77xf32, #wgrad> -> tensor<257x77xf32, #weight>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$source);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
}

// An enumeration prints the space before it; the empty literals in the formats
// keep it single.

//===----------------------------------------------------------------------===//
// Partitioned. For all of them:
// - C1: both types have the same elements, mesh and logical shape.
// - C2: both types have the shapes of a rank.
//===----------------------------------------------------------------------===//

def Gtp_MaterializeOp : Gtp_ConversionOp<"materialize"> {
  let summary = "gathers the shards of a weight for one interval of use";
  let description = [{
    All shards over the storage axes, joined in order. Two intervals of one weight
    are two values that equal each other: the interval's number keeps them apart, so
    that no common-subexpression elimination makes a gathered weight live from its
    forward to its backward use. `plane` says which of the two reads it first.

    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: storage axes cut exactly one dimension of the operand, and the result's
      placement is the operand's without them.

    Example:
    ```mlir
    %full = gtp.materialize %w plane forward interval 3
        : tensor<68x77xf32, #weight> -> tensor<257x77xf32, #whole>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$source, Gtp_PlaneAttr:$plane, Gtp_Interval:$interval);
  let assemblyFormat = [{
    $source `plane` `` $plane `interval` $interval attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Gtp_AllGatherOp : Gtp_ConversionOp<"all_gather"> {
  let summary = "joins the pieces of a dimension";
  let description = [{
    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: `axes` are the last that cut dimension `dim` of the operand, the result's
      placement is the operand's without them.

    Example:
    ```mlir
    %y = gtp.all_gather %x dim 0 over (gtp)
        : tensor<2x77xf32, #cut> -> tensor<8x77xf32, #whole>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$source, Gtp_Dim:$dim, StrArrayAttr:$axes);
  let assemblyFormat = [{
    $source `dim` $dim `over` custom<Axes>($axes) attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Gtp_ReduceScatterOp : Gtp_ConversionOp<"reduce_scatter"> {
  let summary = "adds partial sums; each rank keeps its piece of a dimension";
  let description = [{
    The sum travels in the type `wire` and is accumulated in the placement's
    accumulation type, in the order given: `flat` adds the contributions in rank order
    and rounds once, `ring` rounds at each hop. `wire` is the element type when absent.

    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: the operand is a partial sum over `axes`, the result is not.
    - C4: `axes` are the last that cut dimension `dim` of the result, and do not cut the
      operand; nothing else differs.

    Example:
    ```mlir
    %g = gtp.reduce_scatter %dw dim 0 over (gtp) wire f32
        : tensor<257x77xf32, #wgrad> -> tensor<68x77xf32, #weight>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$source, Gtp_Dim:$dim, StrArrayAttr:$axes,
                       OptionalAttr<TypeAttr>:$wire,
                       DefaultValuedAttr<Gtp_OrderAttr, "Order::Flat">:$order);
  let assemblyFormat = [{
    $source `dim` $dim `over` custom<Axes>($axes) (`wire` $wire^)? (`order` `` $order^)?
    attr-dict `:` type($source) `->` type($result)
  }];
}

def Gtp_AllReduceOp : Gtp_ConversionOp<"all_reduce"> {
  let summary = "combines partial values; every rank gets the result";
  let description = [{
    `wire` and `order` are those of `gtp.reduce_scatter`.

    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: the operand is partial over `axes`, the result is not; nothing else differs.

    Example:
    ```mlir
    %n = gtp.all_reduce %partial over (dp, gtp) : tensor<i64, #partial> -> tensor<i64, #all>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$source, StrArrayAttr:$axes, OptionalAttr<TypeAttr>:$wire,
                       DefaultValuedAttr<Gtp_OrderAttr, "Order::Flat">:$order);
  let assemblyFormat = [{
    $source `over` custom<Axes>($axes) (`wire` $wire^)? (`order` `` $order^)?
    attr-dict `:` type($source) `->` type($result)
  }];
}

def Gtp_SliceOp : Gtp_ConversionOp<"slice"> {
  let summary = "each rank keeps its piece of a dimension that it has whole";
  let description = [{
    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: `axes` are the last that cut dimension `dim` of the result, and neither cut the
      operand nor is it partial over them; nothing else differs.
  }];
  let arguments = (ins Gtp_Tensor:$source, Gtp_Dim:$dim, StrArrayAttr:$axes);
  let assemblyFormat = [{
    $source `dim` $dim `over` custom<Axes>($axes) attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Gtp_KeepFirstOp : Gtp_ConversionOp<"keep_first"> {
  let summary = "a replicated value as a partial sum";
  let description = [{
    Ranks whose coordinates along `axes` are all 0 keep the value, the others take zero.

    Constraints:
    - C1, C2 as for every op of a rank.
    - C3: the result is a partial sum over `axes`, the operand is replicated over
      them; nothing else differs.
  }];
  let arguments = (ins Gtp_Tensor:$source, StrArrayAttr:$axes);
  let assemblyFormat = [{
    $source `over` custom<Axes>($axes) attr-dict `:` type($source) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Asynchronous: their order in the block is part of their meaning, so none is pure
//===----------------------------------------------------------------------===//

def Gtp_PrefetchOp : Gtp_Op<"prefetch"> {
  let summary = "starts a collective";
  let description = [{
    Issues the collective `kind` here, with the attributes that its synchronous form
    has, and goes on. The operand may not be overwritten before the ticket is used.

    Constraints:
    - C1: exactly the attributes of the synchronous op are present.
    - C2: the constraints of the synchronous op hold for the operand's and the ticket's
      type.

    Example:
    ```mlir
    %t = gtp.prefetch materialize %w plane forward interval 3
        : tensor<68x77xf32, #weight> -> !gtp.ticket<tensor<257x77xf32, #whole>>
    ```
  }];
  let arguments = (ins Gtp_CollectiveKindAttr:$kind, Gtp_Tensor:$source,
                       OptionalAttr<Gtp_PlaneAttr>:$plane,
                       OptionalAttr<Gtp_Interval>:$interval,
                       OptionalAttr<Gtp_Dim>:$dim, OptionalAttr<StrArrayAttr>:$axes,
                       OptionalAttr<TypeAttr>:$wire,
                       DefaultValuedAttr<Gtp_OrderAttr, "Order::Flat">:$order);
  let results = (outs Gtp_TicketType:$ticket);
  let assemblyFormat = [{
    `` $kind $source (`plane` `` $plane^)? (`interval` $interval^)? (`dim` $dim^)?
    (`over` custom<Axes>($axes)^)? (`wire` $wire^)? (`order` `` $order^)? attr-dict
    `:` type($source) `->` qualified(type($ticket))
  }];
  let hasVerifier = 1;
}

def Gtp_AwaitOp : Gtp_Op<"await", [TypesMatchWith<
    "the result has the ticket's tensor type", "ticket", "result",
    "::llvm::cast<::gtp::dist::TicketType>($_self).getTensor()">]> {
  let summary = "the tensor of a ticket";
  let description = [{
    Whatever uses the result runs after the collective has ended, on whichever stream
    the use runs: a collective on the same stream needs no wait.
  }];
  let arguments = (ins Gtp_TicketType:$ticket);
  let results = (outs Gtp_Tensor:$result);
  let assemblyFormat = "$ticket attr-dict `:` qualified(type($ticket))";
}

def Gtp_ReleaseOp : Gtp_Op<"release"> {
  let summary = "the memory of a value may be reused from here on";
  let description = [{
    For a gathered weight after its last use. With a ticket: the memory was read by a
    collective, and the compute stream has waited for its end here.

    Constraints:
    - C1: the value is not used after the release.
    - C2: a ticket is that of a collective which reads the value.

    Example:
    ```mlir
    gtp.release %full : tensor<257x77xf32, #whole>
    gtp.release %dw after %t : tensor<257x77xf32, #wgrad>, !gtp.ticket<tensor<68x77xf32, #weight>>
    ```
  }];
  let arguments = (ins Gtp_Tensor:$value, Optional<Gtp_TicketType>:$ticket);
  let assemblyFormat = [{
    $value (`after` $ticket^)? attr-dict `:` type($value) (`,` qualified(type($ticket))^)?
  }];
  let hasVerifier = 1;
}

#endif // GTP_DIALECTS_GTP_GTPOPS
