//===- PlanBuilder.h - Small legal plans for tests --------------*- C++ -*-===//

#ifndef GTP_TEST_UNIT_PLAN_PLANBUILDER_H
#define GTP_TEST_UNIT_PLAN_PLANBUILDER_H

#include "gtp/Plan/plan.pb.h"

#include <string>
#include <utility>
#include <vector>

namespace gtp::plan::test {

/// Builds a plan piece by piece; names are interned, offsets and events
/// assigned.
class PlanBuilder {
public:
  PlanBuilder();

  uint32_t string(const std::string &text);
  uint32_t axis(const std::string &name, uint64_t degree);
  uint32_t stream(pb::Stream::Kind kind);
  uint32_t communicator(std::vector<uint32_t> axes,
                        pb::Communicator::Purpose purpose);
  /// Behind all others, or at the offset of `over`.
  uint32_t buffer(const std::string &name, pb::Buffer::Kind kind, uint64_t size,
                  int over = -1);
  pb::Operand operand(uint32_t buffer, pb::DType type,
                      std::vector<uint64_t> dims, uint64_t offset = 0) const;

  void region(pb::Region::Kind kind, uint64_t repeat);
  /// Each adds an operation to the last region and gives its index.
  int kernel(uint32_t stream, const std::string &name,
             const std::vector<pb::Operand> &operands, int parameter = -1);
  int collective(uint32_t stream, pb::Collective::Kind kind,
                 uint32_t communicator, const pb::Operand &source,
                 const pb::Operand &destination, int parameter = -1);
  int fill(uint32_t stream, const pb::Operand &destination);
  void attribute(const std::string &name, int64_t value);
  void attribute(const std::string &name, double value);
  /// The last operation waits for operation `of` of its region.
  void wait(int of);

  pb::Operation &last();
  pb::Region &lastRegion();

  /// Sizes the arena and states true claims.
  pb::Plan finish();

  pb::Plan plan;

private:
  int add(uint32_t stream, const std::string &source);
  uint64_t end = 0;
};

struct StepOptions {
  uint64_t dp = 1;
  uint64_t gtp = 2;
  uint64_t microbatches = 1;
  /// One weight is embedding and head.
  bool tied = false;
  /// bf16 compute copies beside f32 masters.
  bool bf16 = false;
  /// With bf16: the masters in two halves, no copies.
  bool split = false;
  /// Gathered weights share one slot, as do their full gradients.
  bool reuse = true;
  /// Sums behind the norm, each of two values before it, over few addresses.
  int chain = 0;
};

/// Embedding, norm and head, with loss, clipping and AdamW: every kind of
/// operation and of reduction, on compute, gather and reduce streams.
pb::Plan buildStep(const StepOptions &options = {});

/// Sets what a plan claims of its arena and of live bytes to what is true.
void restateClaims(pb::Plan &plan);

/// Operation whose source is `name`; null when there is none.
pb::Operation *findOperation(pb::Plan &plan, const std::string &name);
/// Its region and index.
std::pair<pb::Region *, int> findPlace(pb::Plan &plan, const std::string &name);

} // namespace gtp::plan::test

#endif // GTP_TEST_UNIT_PLAN_PLANBUILDER_H
