//===- GtpToPlan.h - The conversion's shared pieces -----------------------===//

#ifndef GTP_LIB_CONVERSION_GTPTOPLAN_H
#define GTP_LIB_CONVERSION_GTPTOPLAN_H

#include "ParameterTable.h"
#include "StepBuilder.h"
#include "gtp/Analysis/CostModel.h"

namespace gtp {

/// Maps the values of a partitioned training step to views of buffers. A value
/// gets its place before the op that makes it is converted: the place that its
/// use prescribes (an output, a sum over microbatches, a piece of a concat, an
/// in-place all-reduce), or else a new buffer.
class Places {
public:
  explicit Places(StepBuilder &steps) : steps(steps) {}

  /// Where a converted value is; asserts that there is one.
  const Slot &operator[](mlir::Value value) const;
  bool has(mlir::Value value) const { return slots.contains(value); }
  /// By value: a slot of this very map would move while it grows.
  void set(mlir::Value value, Slot slot) { slots[value] = slot; }

  /// Prescribes where the op that makes `value` writes it.
  void assign(mlir::Value value, Slot slot) {
    assigned[producedValue(value)] = slot;
  }
  bool isAssigned(mlir::Value value) const {
    return assigned.contains(producedValue(value));
  }

  /// Where the op that defines `value` (a result or a ticket) shall write it.
  Slot destination(mlir::Value value);

  /// Bytes behind the value that its padded buffer has; 0 when it is not
  /// padded.
  int64_t tailBytes(mlir::Value value) const;

  /// A new buffer of a kind for a tensor, with room for `padded` rows.
  Slot allocate(mlir::Location loc, planir::BufferKind kind,
                mlir::RankedTensorType type, int64_t paddedBytes,
                llvm::StringRef name);

  /// The view of a tensor type at the start of a buffer.
  static planir::ViewAttr wholeView(mlir::RankedTensorType type);
  static int64_t bytesOf(mlir::RankedTensorType type);

  /// A ticket for what is awaited, other values themselves.
  static mlir::Value producedValue(mlir::Value value);
  /// What is awaited of a ticket, other values themselves.
  static mlir::Value awaitedValue(mlir::Value value);
  static mlir::RankedTensorType tensorType(mlir::Value value);

  /// Whether an all-reduce of `source` may work in its memory.
  bool reducesInPlace(mlir::Value source) const;

private:
  /// Bytes that the value's buffer needs for the padding that collectives on it
  /// touch.
  static int64_t paddedBytes(mlir::Value value);
  Slot joined(mlir::OpOperand &use);

  StepBuilder &steps;
  llvm::DenseMap<mlir::Value, Slot> slots, assigned;
};

/// The communicators of a plan, made as they are needed.
class Communicators {
public:
  /// Collectives that run together may hold `ctaReserve` multiprocessors.
  Communicators(dist::MeshAttr mesh, int64_t ctaReserve)
      : mesh(mesh), ctaReserve(ctaReserve) {}

  struct Entry {
    mlir::FlatSymbolRefAttr symbol;
    planir::Purpose purpose;
    llvm::SmallVector<int64_t> axes;
    planir::CtaPolicy policy = planir::CtaPolicy::Default;
    bool limits = false, window = false, spansNodes = false;
  };
  /// That of a collective, which goes by `transport` and perhaps leaves a link
  /// domain.
  const Entry &get(const CollectiveSpec &spec, planir::Transport transport,
                   bool spansNodes);
  /// Declares those that were asked for, in that order, and tells the program's
  /// collectives how many multiprocessors they hold.
  void emit(mlir::OpBuilder &builder, planir::ProgramOp program) const;

private:
  dist::MeshAttr mesh;
  int64_t ctaReserve;
  llvm::SmallVector<Entry> entries;
};

/// What the programs of a plan have in common.
struct PlanParts {
  PlanParts(planir::ProgramOp program, dist::MeshAttr mesh, int64_t ctaReserve)
      : program(program), communicators(mesh, ctaReserve) {}

  /// Where something that outlives a program is: the state `part` (its role) of
  /// the parameter `owner`, or the input or output `part`, with that word as
  /// owner. The first program that has it makes it, others of the same type
  /// find it.
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, Slot> fixed;

  planir::ProgramOp program;
  Communicators communicators;
};

/// The plan's attributes that describe model, numerics and origin.
void describeProgram(planir::ProgramOp program, mlir::ModuleOp module,
                     const ParameterTable &parameters, mlir::func::FuncOp step,
                     tfm::MicrobatchesOp body, const CostModel &costs);
/// `plan.parameter` of an entry.
void emitParameter(mlir::OpBuilder &builder, const ParameterEntry &entry,
                   const Places &places);

/// Converts the function of one program to the steps of `block`.
class Converter {
public:
  Converter(mlir::func::FuncOp step, tfm::MicrobatchesOp body, PlanParts &plan,
            mlir::Block &block, ParameterTable parameters,
            const CostModel &costs)
      : step(step), body(body), plan(plan), parameters(std::move(parameters)),
        costs(costs),
        mesh(step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr)),
        repeat(llvm::cast<mlir::RankedTensorType>(
                   body.getInputs().front().getType())
                   .getDimSize(0)),
        steps(plan.program, block), places(steps) {}

  mlir::LogicalResult run();
  /// Declares parameters, communicators and streams, which the plan has once:
  /// of its first program, when all are converted.
  void declarePlan();
  /// Declares inputs and outputs.
  void declareIo();
  void describe(mlir::ModuleOp module);

private:
  void placeArguments();
  void placeResults();
  void placeSums();
  planir::RegionOp beginRegion(mlir::Location loc, planir::RegionKind kind,
                               int64_t times);
  mlir::LogicalResult convertOnce();
  mlir::LogicalResult convertBody();
  mlir::LogicalResult convertRest();
  /// The place of what outlives the program, made when no other has it.
  Slot fixedPlace(mlir::Location loc, planir::BufferKind kind,
                  mlir::RankedTensorType type, mlir::Attribute owner,
                  mlir::StringAttr part, llvm::StringRef name);

  mlir::LogicalResult convert(mlir::Operation &op);
  mlir::LogicalResult convertKernel(mlir::Operation &op,
                                    const plan::KernelSpec &spec);
  mlir::LogicalResult convertCollective(mlir::Operation &op,
                                        const CollectiveSpec &spec);
  /// The rank's piece, of `shape`, of a dense value that `axes` cut, major to
  /// minor.
  Slot ownPiece(const Slot &whole, llvm::ArrayRef<mlir::StringAttr> axes,
                llvm::ArrayRef<int64_t> shape) const;
  void copyOwnShard(mlir::Location loc, const CollectiveSpec &spec,
                    const machine::CollectivePrice &price,
                    StepBuilder::Collective &gather);
  mlir::LogicalResult convertSlice(dist::SliceOp op);
  void convertSplit(tfm::SplitOp op);
  void convertKeepFirst(dist::KeepFirstOp op);
  mlir::FailureOr<mlir::DictionaryAttr>
  settingsOf(mlir::Operation &op, const plan::KernelSpec &spec);
  /// The scratch of a kernel; null where it runs without. Optional scratch is
  /// one for all kernels of the region that want as much, in turn.
  mlir::FailureOr<Slot> scratch(mlir::Operation &op,
                                const plan::OperandSpec &operand);
  /// The slot of an operand, copied when the kernel cannot read its pitch.
  Slot readable(mlir::Operation &op, mlir::Value value,
                const plan::OperandSpec &spec);
  /// The slot of a result that the kernel writes over an operand: the
  /// operand's, or a copy of it where others have a use for that.
  Slot updated(mlir::Value operand, mlir::OpResult result);
  void clearTail(mlir::Location loc, mlir::Value value, const Slot &slot);

  mlir::func::FuncOp step;
  tfm::MicrobatchesOp body;
  PlanParts &plan;
  ParameterTable parameters;
  const CostModel &costs;
  dist::MeshAttr mesh;
  int64_t repeat;
  StepBuilder steps;
  Places places;
  llvm::SmallVector<std::pair<mlir::StringAttr, mlir::Value>> inputs, outputs;
  llvm::DenseMap<mlir::Value, mlir::Value> tokens; ///< of tickets
  llvm::DenseMap<int64_t, Slot> workspaces;        ///< of the region, by bytes
};

} // namespace gtp

#endif // GTP_LIB_CONVERSION_GTPTOPLAN_H
