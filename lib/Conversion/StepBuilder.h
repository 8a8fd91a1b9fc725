//===- StepBuilder.h - Appends plan operations in issue order -------------===//
//
// Keeps, for the region being built, who touched which bytes last, so that
// every operation gets a token of each conflicting access on another stream.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_CONVERSION_STEPBUILDER_H
#define GTP_LIB_CONVERSION_STEPBUILDER_H

#include "dialects/Plan/PlanDialect.h"
#include "mlir/IR/Builders.h"

namespace gtp {

/// Where a value is.
struct Slot {
  mlir::Value buffer;
  planir::ViewAttr view;

  explicit operator bool() const { return bool(buffer); }
  bool samePlace(const Slot &other) const {
    return buffer == other.buffer && view.samePlace(other.view);
  }
};

/// Streams of plans, by position; the last where a gather needs it.
enum StreamIndex : int64_t {
  kComputeStream,
  kGatherStream,
  kReduceStream,
  kCopyStream
};

class StepBuilder {
public:
  /// Appends to a program of the plan: `program` itself or a subprogram.
  StepBuilder(planir::ProgramOp program, mlir::Block &block);

  mlir::OpBuilder &ops() { return builder; }

  mlir::Value createBuffer(mlir::Location loc, planir::BufferKind kind,
                           int64_t bytes, llvm::StringRef name);

  /// Steps that follow belong to a new region.
  planir::RegionOp beginRegion(mlir::Location loc, planir::RegionKind kind,
                               int64_t repeat);

  planir::KernelOp kernel(mlir::Location loc, llvm::StringRef name,
                          llvm::ArrayRef<Slot> operands,
                          mlir::DictionaryAttr settings,
                          mlir::FlatSymbolRefAttr parameter, int64_t duration,
                          mlir::FlatSymbolRefAttr secondParameter = {});
  planir::CopyOp copy(mlir::Location loc, const Slot &source,
                      const Slot &destination, int64_t duration);
  planir::FillOp fill(mlir::Location loc, const Slot &destination,
                      int64_t duration);
  struct Collective {
    planir::CollectiveKind kind;
    mlir::FlatSymbolRefAttr communicator, parameter;
    Slot source, destination;
    mlir::Type wire, accumulation;
    planir::Order order;
    planir::Transport transport;
    Slot scratch; ///< null where the transport needs none
    int64_t duration;
  };
  /// Puts the rank's own shard in its place, before a gather that reads it
  /// there. It goes by a stream of its own, so that transfers before the gather
  /// run meanwhile.
  planir::CopyOp copyOwnShard(mlir::Location loc, const Slot &shard,
                              const Slot &piece, int64_t duration);
  /// Triggered by the compute op before it.
  planir::CollectiveOp collective(mlir::Location loc,
                                  const Collective &collective);

  /// The next compute op starts after this token.
  void holdCompute(mlir::Value token) { held.push_back(token); }

  /// The order of regions is the order they were begun in; what describes the
  /// program goes before them.
  void setInsertionPointBeforeRegions();

private:
  struct Access {
    planir::StepOpInterface step;
    unsigned index;
    int64_t begin, end;
    bool writes;
  };

  /// Tokens of conflicting accesses and of `also` become those of `step`.
  void finish(planir::StepOpInterface step,
              llvm::ArrayRef<mlir::Value> also = {});
  void finishCompute(planir::StepOpInterface step);
  void finishTransfer(planir::StepOpInterface step);
  mlir::Type token() { return builder.getType<planir::TokenType>(); }

  planir::ProgramOp program;
  mlir::Block &block;
  planir::RegionOp region, firstRegion;
  mlir::OpBuilder builder;
  unsigned nextIndex = 0;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Access, 2>> accesses;
  llvm::DenseMap<mlir::Value, unsigned> indexOf; ///< of tokens of the region
  mlir::Value lastCompute;
  llvm::SmallVector<mlir::Value> held;
};

} // namespace gtp

#endif // GTP_LIB_CONVERSION_STEPBUILDER_H
