//===- Mesh.h - Axes of a mesh, and what each is for ----------------------===//
//
// The one place of the compiler that knows axes by name. Everything behind it
// follows from placements.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TRANSFORMS_MESH_H
#define GTP_TRANSFORMS_MESH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace gtp {

/// An axis that meshes may have.
struct AxisKind {
  llvm::StringLiteral name;
  bool supported;   ///< may have a degree above 1
  bool cutsData;    ///< ranks along it have different sequences
  bool cutsWeights; ///< weights at rest are cut along it, and gathered to be
                    ///< used
};

/// All of them; those that cut one dimension do so in this order, major first.
llvm::ArrayRef<AxisKind> axisKinds();

/// An axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t degree = 1;
};

/// Axis degrees in rank order, the last varies fastest.
struct Mesh {
  llvm::SmallVector<MeshAxis> axes;

  /// Reads "dp=2,gtp=4". Refuses what is no axis, degrees above 1 of axes that
  /// are not supported yet, and more ranks than any job has; the error lacks
  /// the option that the text was given to.
  static llvm::Expected<Mesh> parse(llvm::StringRef text);

  /// 1 for an axis that is not there.
  int64_t degree(llvm::StringRef axis) const;
  int64_t ranks() const;
  /// Ranks that the sequences of a microbatch are split over.
  int64_t dataRanks() const;
  /// As parse() reads it.
  std::string str() const;
};

} // namespace gtp

#endif // GTP_TRANSFORMS_MESH_H
