//===- FitReport.h - What the memory of a rank is for ---------------------===//
//
// Accounts for every byte of a plan at the moment that needs most: by kind, and
// by item. Read-only.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_ANALYSIS_FITREPORT_H
#define GTP_ANALYSIS_FITREPORT_H

#include "dialects/Plan/PlanDialect.h"

#include "llvm/Support/raw_ostream.h"

#include <array>
#include <string>
#include <vector>

namespace gtp {

/// What a buffer is for, by the roles that kernels give it.
enum class MemoryKind {
  ComputeWeights,
  MasterWeights,
  OptimizerState,
  Gradients,
  KeptActivations, ///< made by the forward pass, read by the backward
  GatheredWeights,
  Logits,
  Working, ///< values that do not cross from the forward pass to the backward
  Scratch,
  InputsAndOutputs,
};
inline constexpr size_t kMemoryKinds = 10;

/// "optimizer state", for people.
llvm::StringRef name(MemoryKind kind);

/// "156.30 GiB": a number of bytes for people.
std::string formatBytes(int64_t bytes);

/// The bytes of a rank. Those of all kinds, packing and overhead add up to the
/// total; buffers count with their alignment.
struct FitReport {
  /// The buffers of one kind whose names differ in numbers only.
  struct Item {
    std::string name; ///< "layers.*.mlp.down.m"
    MemoryKind kind;
    int64_t bytes = 0;
    int64_t buffers = 0;
  };

  std::array<int64_t, kMemoryKinds> bytes = {}; ///< by MemoryKind
  std::vector<Item> items;   ///< the largest first, then by name
  int64_t packingBytes = 0;  ///< of the arena, above what is live at once
  int64_t overheadBytes = 0; ///< of the target
  int64_t paddingBytes = 0;  ///< of persistent shards; in `bytes` already
  std::string peak;          ///< the op whose buffers complete the peak

  /// All kinds and packing.
  int64_t arenaBytes() const;
  int64_t totalBytes() const { return arenaBytes() + overheadBytes; }
  /// The first of those with the most bytes.
  MemoryKind largestKind() const;
  /// The largest item of a kind; null when there is none.
  const Item *largest(MemoryKind kind) const;
  /// "optimizer state, 105.20 GiB, and of it layers.*.mlp.down.m x 80, 8.75
  /// GiB".
  std::string largestPart() const;

  /// A table. `limit` (0: none) is what the total is held against, in the words
  /// of `limitName`.
  void print(llvm::raw_ostream &stream, int64_t limit,
             llvm::StringRef limitName) const;
};

/// The account of a program with offsets. `peak`, if given, are buffers that
/// are live together and weigh the most; else they are looked for.
FitReport fitReport(planir::ProgramOp program, int64_t overheadBytes,
                    llvm::ArrayRef<planir::BufferOp> peak = {});

} // namespace gtp

#endif // GTP_ANALYSIS_FITREPORT_H
