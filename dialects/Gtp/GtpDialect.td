//===- GtpDialect.td - Where it is computed -------------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPDIALECT
#define GTP_DIALECTS_GTP_GTPDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Gtp_Dialect : Dialect {
  let name = "gtp";
  let cppNamespace = "::gtp::dist";
  let summary = "Placements on a mesh of ranks, and the collectives between them";
  let description = [{
    A value's placement is the encoding of its tensor type: for each dimension the
    axes of the mesh that cut it, and the axes over which the value is a partial
    sum. What is neither cut nor partial is *replicated*, that is bit-identical on
    the ranks of that axis.

    The dialect has two phases. *Placed*: types have logical shapes, and a
    mismatch of placements is an explicit `gtp.convert`. *Partitioned* (functions
    marked `gtp.partitioned`): types have the shape of one rank, and conversions
    are collectives.

    Attributes on other ops:
    - `gtp.mesh` (function): the mesh that its placements are of.
    - `gtp.partitioned` (function, unit): the phase.
    - `gtp.trigger` (`gtp.materialize`, i64): position in its block of the op after
      which the gather is issued; -1 is the start of the block. Positions count
      every op of the block, from 0, before `gtp-prefetch` runs.
    - `gtp.pinned` (`gtp.materialize`, unit): when the gather is issued is decided by
      hand for its parameter, so it stays asynchronous where others are not.
    - `gtp.release_before` (`gtp.reduce_scatter`, `gtp.all_reduce`, i64): position
      of the op before which the compute stream must have seen the reduction end,
      because the operand's memory is reused from there on.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributesAndTypes();

    static constexpr ::llvm::StringLiteral kMeshAttr = "gtp.mesh";
    static constexpr ::llvm::StringLiteral kPartitionedAttr = "gtp.partitioned";
    static constexpr ::llvm::StringLiteral kTriggerAttr = "gtp.trigger";
    static constexpr ::llvm::StringLiteral kPinnedAttr = "gtp.pinned";
    static constexpr ::llvm::StringLiteral kReleaseBeforeAttr =
        "gtp.release_before";
  }];
}

#endif // GTP_DIALECTS_GTP_GTPDIALECT
