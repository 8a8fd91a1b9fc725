//===- Mutations.h - Ways to break a plan, and ways not to ------*- C++ -*-===//
//
// Each kind takes a legal plan and returns changed ones, all for the same
// reason wrong, or all harmless. A kind that finds nothing to change returns
// none. The claims of what comes back are restated where that is possible, so
// that a plan is refused for what was done to it and not for its peak.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_LIB_PLANMUTATE_MUTATIONS_H
#define GTP_TEST_LIB_PLANMUTATE_MUTATIONS_H

#include "gtp/Plan/plan.pb.h"

#include <string_view>
#include <vector>

namespace gtp::plan::mutate {

enum class Expect {
  Refused, ///< by one of the kind's rules
  Legal,   ///< and computes the same bits
  /// Refused by one of the kind's rules, or legal and computes the same bits:
  /// not every place of the kind is one that matters.
  Either,
  /// `checkRanks` refuses it beside the plan it came from.
  RanksDiffer,
};

struct Kind {
  std::string_view name;
  std::string_view does; ///< what is done, for people
  Expect expect;
  std::vector<std::string_view> rules; ///< of which one must be found
  std::vector<pb::Plan> (*make)(const pb::Plan &plan);
};

/// All kinds, the illegal ones first.
std::vector<Kind> allKinds();

// The parts of that list, a file each.
std::vector<Kind> orderKinds();
std::vector<Kind> memoryKinds();
std::vector<Kind> weightKinds();
std::vector<Kind> ownPieceKinds();
std::vector<Kind> transportKinds();
std::vector<Kind> gradientKinds();
std::vector<Kind> microbatchKinds();
std::vector<Kind> scalarKinds();
std::vector<Kind> claimKinds();
std::vector<Kind> harmlessKinds();

/// Runs every kind over the training steps and the evaluations of the plans,
/// whose names head the columns, and prints what refused each mutant, a row a
/// kind. Up to `keepEach` accepted mutants a kind and plan are written to
/// `folder`, if given, as <plan>.<kind>.<number>.gtpplan. Returns the number of
/// kinds that failed.
int runMatrix(const std::vector<std::string> &names,
              const std::vector<pb::Plan> &plans, const std::string &folder,
              int keepEach);

} // namespace gtp::plan::mutate

#endif // GTP_TEST_LIB_PLANMUTATE_MUTATIONS_H
