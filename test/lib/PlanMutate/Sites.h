//===- Sites.h - Places in a plan and what to do there ----------*- C++ -*-===//

#ifndef GTP_TEST_LIB_PLANMUTATE_SITES_H
#define GTP_TEST_LIB_PLANMUTATE_SITES_H

#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/plan.pb.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gtp::plan::mutate {

/// An operation of program 0, and a part of it where that matters (a wait, an
/// operand).
struct Site {
  int region = 0;
  int operation = 0;
  int part = 0;
};

/// Mutants of one kind and plan are at most this many, spread over its sites.
constexpr size_t kMaxMutants = 4;

pb::Operation &at(pb::Plan &plan, const Site &site);
const pb::Operation &at(const pb::Plan &plan, const Site &site);
pb::Region &regionAt(pb::Plan &plan, const Site &site);
const pb::Region &regionAt(const pb::Plan &plan, const Site &site);

using OperationTest = std::function<bool(const pb::Operation &)>;

/// Operations that pass the test, in order.
std::vector<Site> sitesOf(const pb::Plan &plan, const OperationTest &test);
/// The waits of all operations, in order.
std::vector<Site> waitsOf(const pb::Plan &plan);
/// Operands of kernels that pass the test.
std::vector<Site>
operandsOf(const pb::Plan &plan,
           const std::function<bool(const pb::Operation &, const OperandSpec &,
                                    const pb::Operand &)> &test);
pb::Operand &operandAt(pb::Plan &plan, const Site &site);
const pb::Operand &operandAt(const pb::Plan &plan, const Site &site);

/// A copy of the plan for each of at most `kMaxMutants` sites at which `change`
/// says that it changed something; claims restated.
std::vector<pb::Plan>
mutateAt(const pb::Plan &plan, const std::vector<Site> &sites,
         const std::function<bool(pb::Plan &, const Site &)> &change);
/// The same of one change.
std::vector<pb::Plan> mutateOnce(const pb::Plan &plan,
                                 const std::function<bool(pb::Plan &)> &change);

/// Sets what a plan claims of its memory to what is true, if it is well formed.
void restateClaims(pb::Plan &plan);

// What operations are.
bool isKernel(const pb::Plan &plan, const pb::Operation &operation,
              std::string_view name);
const KernelSpec *kernelOf(const pb::Plan &plan,
                           const pb::Operation &operation);
bool isCollective(const pb::Operation &operation, pb::Collective::Kind kind);
bool isWeightGather(const pb::Operation &operation);
/// A reduction of a parameter's gradient, of a kind.
bool isGradientReduction(const pb::Operation &operation,
                         pb::Collective::Kind kind);
/// Parameter that it is about; -1: none.
int parameterOf(const pb::Operation &operation);
bool updates(const pb::Plan &plan, const pb::Operation &operation);

/// The copy that puts the rank's own piece where an in-place gather finds it;
/// none where the gather sends the shard itself.
std::optional<Site> ownCopyOf(const pb::Plan &plan, const Site &gather);
/// The shard that a gather brings together: its source, or that of its copy.
pb::Operand &shardOf(pb::Plan &plan, const Site &gather);
/// The operands that say which bytes those are: the gather's, and its copy's.
std::vector<pb::Operand *> gatherOperands(pb::Plan &plan, const Site &gather);
/// Lets the host move what a collective means, so that no transport refuses it
/// for what it means.
void moveByHost(pb::Operation &collective);

/// All operands of an operation, with what the registry says.
struct Use {
  const pb::Operand *operand;
  bool reads, writes;
};
std::vector<Use> usesOf(const pb::Plan &plan, const pb::Operation &operation);
std::vector<pb::Operand *> mutableOperands(pb::Operation &operation);

/// Another parameter of the same shape and layout; -1: none.
int neighbour(const pb::Plan &plan, int parameter);

/// Removes an operation: its waits go to the next one on its stream, its event
/// to the one before.
void eraseOperation(pb::Plan &plan, const Site &site);
/// Inserts behind the site, on its stream, without event or waits.
void insertBehind(pb::Plan &plan, const Site &site, pb::Operation operation);
/// The event of an operation of the region, made if it has none.
uint32_t eventOf(pb::Region &region, int operation);

uint32_t stringIndex(pb::Plan &plan, const std::string &text);
/// Index of the buffer of a program's input or output; none when it has none.
std::optional<uint32_t> ioBuffer(const pb::Plan &plan, std::string_view name);
/// Adds a transient buffer behind all others.
uint32_t addBuffer(pb::Plan &plan, uint64_t size);
/// End of the highest buffer of memory 0, rounded up to 256.
uint64_t arenaEnd(const pb::Plan &plan);

} // namespace gtp::plan::mutate

#endif // GTP_TEST_LIB_PLANMUTATE_SITES_H
