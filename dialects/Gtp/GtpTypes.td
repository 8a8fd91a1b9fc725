//===- GtpTypes.td - Tickets and placed tensors ---------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPTYPES
#define GTP_DIALECTS_GTP_GTPTYPES

include "dialects/Gtp/GtpDialect.td"
include "dialects/Gtp/GtpAttrs.td"

def Gtp_TicketType : TypeDef<Gtp_Dialect, "Ticket"> {
  let mnemonic = "ticket";
  let summary = "a tensor that a collective in flight will produce";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensor), [{
      return $_get(tensor.getContext(), tensor);
    }]>];
}

/// A tensor whose encoding is a placement.
def Gtp_Tensor : Type<And<[
    CPred<"::llvm::isa<::mlir::RankedTensorType>($_self)">,
    CPred<"::llvm::isa_and_nonnull<::gtp::dist::PlacementAttr>("
          "::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">]>,
    "tensor with a placement", "::mlir::RankedTensorType">;

#endif // GTP_DIALECTS_GTP_GTPTYPES
