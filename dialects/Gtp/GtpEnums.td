//===- GtpEnums.td - Enumerations -----------------------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPENUMS
#define GTP_DIALECTS_GTP_GTPENUMS

include "dialects/Gtp/GtpDialect.td"
include "mlir/IR/EnumAttr.td"

class Gtp_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::gtp::dist";
}

def Gtp_PartialKind : Gtp_Enum<"PartialKind", "how partial values combine", [
  I32EnumCase<"None", 0, "none">, I32EnumCase<"Sum", 1, "sum">,
  I32EnumCase<"Max", 2, "max">]>;

def Gtp_Plane : Gtp_Enum<"Plane", "who reads a gathered weight", [
  I32EnumCase<"Forward", 0, "forward">, I32EnumCase<"Backward", 1, "backward">]>;
def Gtp_PlaneAttr : EnumAttr<Gtp_Dialect, Gtp_Plane, "plane">;

def Gtp_Order : Gtp_Enum<"Order", "order in which a reduction adds", [
  I32EnumCase<"Flat", 0, "flat">, I32EnumCase<"Ring", 1, "ring">]>;
def Gtp_OrderAttr : EnumAttr<Gtp_Dialect, Gtp_Order, "order">;

def Gtp_CollectiveKind : Gtp_Enum<"CollectiveKind", "an asynchronous collective", [
  I32EnumCase<"Materialize", 0, "materialize">,
  I32EnumCase<"AllGather", 1, "all_gather">,
  I32EnumCase<"ReduceScatter", 2, "reduce_scatter">,
  I32EnumCase<"AllReduce", 3, "all_reduce">]>;
def Gtp_CollectiveKindAttr
    : EnumAttr<Gtp_Dialect, Gtp_CollectiveKind, "collective_kind">;

#endif // GTP_DIALECTS_GTP_GTPENUMS
