//===- PlanFile.h - Reading, writing and printing plans -------------------===//
//
// A plan file is one serialized `pb::Plan`. Its hash is part of it, so a
// damaged file is refused, and ranks compare hashes before the first step. What
// a legal plan is, is the checker's business (Checker.h).
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_PLANFILE_H
#define GTP_PLAN_PLANFILE_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gtp::plan {

/// Changes with every change of the schema or of its meaning.
constexpr uint32_t kSchemaVersion = 2;

/// A larger file is no plan.
constexpr uint64_t kMaxPlanBytes = uint64_t(1) << 30;

struct PlanHash {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const PlanHash &other) const {
    return low == other.low && high == other.high;
  }
  /// 32 hexadecimal digits, the high half first.
  std::string text() const;
};

/// XXH3-128 of the deterministic serialization with the hash fields zero.
PlanHash hashPlan(const pb::Plan &plan);
/// What a sealed plan says that its hash is.
PlanHash sealedHash(const pb::Plan &plan);

/// Sets schema version and hash; the last thing that an emitter does.
void sealPlan(pb::Plan &plan);

/// The bytes of a sealed plan; equal plans have equal bytes.
std::string serializePlan(const pb::Plan &plan);

/// Parses, and refuses another schema version or a wrong hash.
StatusOr<pb::Plan> parsePlan(std::string_view bytes);

/// `parsePlan` of a file; errors name it.
StatusOr<pb::Plan> loadPlan(const std::string &path);

/// Seals a copy and writes it: a regular file by rename, so that nobody sees
/// half of it, anything else (a pipe, /dev/stdout) directly. "-" is stdout.
Status savePlan(const pb::Plan &plan, const std::string &path);

/// Readable text that diffs well: a fact a line, and buffers, events,
/// parameters and communicators by name. What has the same name is numbered
/// from the second on ("#2"). Indices out of range print as such.
std::string planToText(const pb::Plan &plan);

} // namespace gtp::plan

#endif // GTP_PLAN_PLANFILE_H
