//===- GtpAttrs.td - Mesh and placement -----------------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPATTRS
#define GTP_DIALECTS_GTP_GTPATTRS

include "dialects/Gtp/GtpDialect.td"
include "dialects/Gtp/GtpEnums.td"
include "mlir/IR/TensorEncoding.td"

class Gtp_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Gtp_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Gtp_MeshAttr : Gtp_Attr<"Mesh", "mesh"> {
  let summary = "the axes that ranks are numbered by";
  let description = [{
    Axes in rank order, the last varies fastest: with `<dp = 2, gtp = 4>` rank 5 has
    coordinates dp = 1, gtp = 1.

    Constraints:
    - C1: names are unique.
    - C2: degrees are positive and there are at most 2^24 ranks.

    Example:
    ```mlir
    #gtp.mesh<dp = 2, gtp = 4>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$degrees);
  let extraClassDeclaration = [{
    /// Degree of an axis; 1 when the mesh does not have it.
    int64_t degree(::mlir::StringAttr axis) const;
    /// Product of the degrees of `axes`.
    int64_t degree(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    bool has(::mlir::StringAttr axis) const;
    /// Position of an axis; the number of axes when the mesh does not have it.
    unsigned position(::mlir::StringAttr axis) const;
    /// Number of ranks.
    int64_t size() const;
    /// The same axes in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr>
    sorted(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
  }];
}

def Gtp_DimAttr : Gtp_Attr<"Dim", "dim"> {
  let summary = "placement of one dimension";
  let description = [{
    Written `96 {q = 64, k = 32} cut (tp) stored (gtp) granule 4`, all but the first
    optional: its logical size, the named segments it consists of, the compute axes that cut each
    segment, and the storage axes that cut what is left in pieces of whole granules,
    each list major to minor. Cuts nest: with n the degree of all compute axes and s of
    all storage axes, a rank has `ceil(ceil(local / granule) / s) * granule` elements,
    `local` being the sum over segments of `ceil(size / n)`. Every rank has this padded
    size; the padding is zero.

    Constraints:
    - C1: the size is 1 to 2^40, the granule 1 to 2^20.
    - C2: segments have distinct names and positive sizes that sum to the size.
    - C3: no axis is named twice.
    - C4: a granule other than 1 needs storage axes.
  }];
  let parameters = (ins "int64_t":$size,
                        ArrayRefParameter<"::mlir::StringAttr">:$segmentNames,
                        ArrayRefParameter<"int64_t">:$segmentSizes,
                        ArrayRefParameter<"::mlir::StringAttr">:$computeAxes,
                        ArrayRefParameter<"::mlir::StringAttr">:$storageAxes,
                        "int64_t":$granule);
  let builders = [
    AttrBuilder<(ins "int64_t":$size,
                     CArg<"::llvm::ArrayRef<::mlir::StringAttr>", "{}">:$computeAxes), [{
      return $_get($_ctxt, size, ::llvm::ArrayRef<::mlir::StringAttr>(),
                   ::llvm::ArrayRef<int64_t>(), computeAxes,
                   ::llvm::ArrayRef<::mlir::StringAttr>(), 1);
    }]>];
  let extraClassDeclaration = [{
    /// All axes that cut it, major to minor: compute axes, then storage axes.
    ::llvm::SmallVector<::mlir::StringAttr> axes() const;
    bool isCut() const;
    /// Elements a rank has before storage axes cut.
    int64_t computeSize(MeshAttr mesh) const;
    /// Elements a rank has.
    int64_t localSize(MeshAttr mesh) const;
    /// Elements that the shards of all storage axes have together: `computeSize` and
    /// padding.
    int64_t paddedSize(MeshAttr mesh) const;
    DimAttr withoutStorage() const;
    /// Without `axes`, which must be the last that cut it; null when they are not.
    DimAttr withoutLast(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    DimAttr withSize(int64_t size) const;
  }];
}

def Gtp_PlacementAttr : Gtp_Attr<"Placement", "placement", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "how a tensor is laid over a mesh; the encoding of its type";
  let description = [{
    One `gtp.dim` a dimension, and the axes over which the value is partial: the
    logical value is the sum (or maximum) of the ranks' values over these axes,
    accumulated in the type given. Axes named nowhere replicate.

    Constraints:
    - C1: every axis named is one of the mesh and has a degree above 1 (so that equal
      placements are the same attribute).
    - C2: an axis is named once, over all dimensions and the partial axes.
    - C3: partial axes are in the order of the mesh, and there are some exactly when
      the kind is not none; then there is an accumulation type, i64, f32 or f64.

    As the encoding of a tensor type:
    - E1: it has a dimension for each of the tensor's.
    - E2: the tensor's shape is the logical one or that of a rank.
    - E3: a partial tensor's accumulation type is an integer if its elements are, and no
      narrower than they are.

    Example:
    ```mlir
    #mesh = #gtp.mesh<dp = 2, gtp = 4>
    #tokens = #gtp.placement<#mesh, [8 cut (dp, gtp), 128]>
    #weight = #gtp.placement<#mesh, [257 stored (gtp) granule 4, 77]>
    #wgrad = #gtp.placement<#mesh, [257, 77], sum (dp, gtp) in f32>
    ```
  }];
  let parameters = (ins "::gtp::dist::MeshAttr":$mesh,
                        ArrayRefParameter<"::gtp::dist::DimAttr">:$dims,
                        "::gtp::dist::PartialKind":$partialKind,
                        ArrayRefParameter<"::mlir::StringAttr">:$partialAxes,
                        "::mlir::Type":$accumulation);
  let builders = [
    AttrBuilderWithInferredContext<(ins "::gtp::dist::MeshAttr":$mesh,
        "::llvm::ArrayRef<::gtp::dist::DimAttr>":$dims), [{
      return $_get(mesh.getContext(), mesh, dims, PartialKind::None,
                   ::llvm::ArrayRef<::mlir::StringAttr>(), ::mlir::Type());
    }]>];
  let extraClassDeclaration = [{
    /// The placement of a value of this shape that every rank has whole.
    static PlacementAttr replicated(MeshAttr mesh,
                                    ::llvm::ArrayRef<int64_t> shape);

    ::llvm::SmallVector<int64_t> logicalShape() const;
    /// What a rank has, padding included.
    ::llvm::SmallVector<int64_t> localShape() const;
    /// What the shards of all storage axes have together, padding included: the buffer
    /// that they are gathered into.
    ::llvm::SmallVector<int64_t> paddedShape() const;

    bool isPartial() const { return getPartialKind() != PartialKind::None; }
    bool isStorageCut() const;
    /// Neither cut nor partial.
    bool isReplicated() const;
    /// The one dimension that storage axes cut; nothing when there is none or more.
    std::optional<unsigned> storageDim() const;

    PlacementAttr withoutStorage() const;
    PlacementAttr withoutPartial() const;
    /// Partial over these axes, in any order; over none of them it is not partial.
    PlacementAttr withPartial(PartialKind kind,
                              ::llvm::ArrayRef<::mlir::StringAttr> axes,
                              ::mlir::Type accumulation) const;
    PlacementAttr withDim(unsigned index, DimAttr dim) const;
    PlacementAttr withDims(::llvm::ArrayRef<DimAttr> dims) const;
  }];
}

#endif // GTP_DIALECTS_GTP_GTPATTRS
