//===- Mesh.cpp - Axes of a mesh, and what each is for --------------------===//

#include "gtp/Transforms/Mesh.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace gtp;
using llvm::StringRef;
using llvm::Twine;

llvm::ArrayRef<AxisKind> gtp::axisKinds() {
  static constexpr AxisKind kAxes[] = {
      {"dp", true, true, false},
      {"gtp", true, true, true},
      {"tp", false, false, false},
      {"cp", false, false, false},
  };
  return kAxes;
}

static std::string namesOf(bool (*wanted)(const AxisKind &),
                           StringRef separator) {
  llvm::SmallVector<StringRef> names;
  for (const AxisKind &kind : axisKinds())
    if (wanted(kind))
      names.push_back(kind.name);
  return llvm::join(names, separator);
}

llvm::Expected<Mesh> Mesh::parse(StringRef text) {
  // Ranks of a job; far above any, and products of sizes stay in 64 bits.
  constexpr int64_t kMaxRanks = int64_t(1) << 24;
  auto error = [](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  Mesh mesh;
  int64_t ranks = 1;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, degreeText] = part.split('=');
    const AxisKind *kind =
        llvm::find_if(axisKinds(), [name = name](const AxisKind &candidate) {
          return candidate.name == name;
        });
    if (kind == axisKinds().end())
      return error("'" + part +
                   "' is no axis with its degree; expected for example "
                   "dp=2,gtp=4 (axes: " +
                   namesOf([](const AxisKind &) { return true; }, ", ") + ")");
    int64_t degree = 0;
    if (degreeText.getAsInteger(10, degree) || degree < 1 || degree > kMaxRanks)
      return error("the degree of " + name + " is '" + degreeText +
                   "'; expected an integer from 1 to " + Twine(kMaxRanks));
    if (llvm::any_of(mesh.axes, [name = name](const MeshAxis &axis) {
          return axis.name == name;
        }))
      return error("axis " + name + " appears twice");
    if (degree > 1 && !kind->supported)
      return error(name + " above 1 is not supported yet; " +
                   namesOf([](const AxisKind &kind) { return kind.supported; },
                           " and ") +
                   " are");
    if (degree > kMaxRanks / ranks)
      return error("more than " + Twine(kMaxRanks) + " ranks");
    ranks *= degree;
    mesh.axes.push_back({name.str(), degree});
  }
  return mesh;
}

int64_t Mesh::degree(StringRef axis) const {
  for (const MeshAxis &candidate : axes)
    if (candidate.name == axis)
      return candidate.degree;
  return 1;
}

int64_t Mesh::ranks() const {
  int64_t product = 1;
  for (const MeshAxis &axis : axes)
    product *= axis.degree;
  return product;
}

int64_t Mesh::dataRanks() const {
  int64_t product = 1;
  for (const AxisKind &kind : axisKinds())
    if (kind.cutsData)
      product *= degree(kind.name);
  return product;
}

std::string Mesh::str() const {
  return llvm::join(llvm::map_range(axes,
                                    [](const MeshAxis &axis) {
                                      return axis.name + "=" +
                                             std::to_string(axis.degree);
                                    }),
                    ",");
}
