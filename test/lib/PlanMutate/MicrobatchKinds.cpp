//===- MicrobatchKinds.cpp - Which microbatches are in a sum --------------===//

#include "Mutations.h"
#include "Sites.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

bool repeats(const pb::Plan &plan) { return plan.model().microbatches() > 1; }

/// Operations that add to what earlier iterations left.
std::vector<Site> accumulations(const pb::Plan &plan) {
  return sitesOf(plan, [](const pb::Operation &op) {
    pb::Operation copy = op;
    std::vector<pb::Operand *> operands = mutableOperands(copy);
    return std::any_of(
        operands.begin(), operands.end(),
        [](const pb::Operand *operand) { return operand->accumulate(); });
  });
}

/// Runs in some iterations only; nothing else may wait for it.
std::vector<pb::Plan> runOnly(const pb::Plan &plan, pb::Operation::When when) {
  if (!repeats(plan))
    return {};
  return mutateAt(plan, accumulations(plan),
                  [&](pb::Plan &mutant, const Site &site) {
                    pb::Operation &operation = at(mutant, site);
                    operation.set_when(when);
                    uint32_t event = operation.event_plus1();
                    for (pb::Operation &other :
                         *regionAt(mutant, site).mutable_operations())
                      for (int w = other.waits_size() - 1; event && w >= 0; --w)
                        if (other.waits(w).event() == event - 1)
                          other.mutable_waits()->DeleteSubrange(w, 1);
                    return true;
                  });
}

std::vector<pb::Plan> skipFirst(const pb::Plan &plan) {
  return runOnly(plan, pb::Operation::NOT_FIRST);
}
std::vector<pb::Plan> skipLast(const pb::Plan &plan) {
  return runOnly(plan, pb::Operation::NOT_LAST);
}
std::vector<pb::Plan> onlyLast(const pb::Plan &plan) {
  return runOnly(plan, pb::Operation::LAST);
}

std::vector<pb::Plan> overwrite(const pb::Plan &plan) {
  if (!repeats(plan))
    return {};
  return mutateAt(
      plan, accumulations(plan), [](pb::Plan &mutant, const Site &site) {
        for (pb::Operand *operand : mutableOperands(at(mutant, site)))
          operand->clear_accumulate();
        if (at(mutant, site).has_collective())
          moveByHost(at(mutant, site));
        return true;
      });
}

/// A sum that each microbatch starts anew is kept, and added again.
std::vector<pb::Plan> accumulateTooMuch(const pb::Plan &plan) {
  if (!repeats(plan))
    return {};
  return mutateAt(
      plan,
      sitesOf(plan,
              [](const pb::Operation &op) {
                return op.has_collective() && parameterOf(op) >= 0 &&
                       !isWeightGather(op) &&
                       !op.collective().destinations(0).accumulate();
              }),
      [](pb::Plan &mutant, const Site &site) {
        at(mutant, site)
            .mutable_collective()
            ->mutable_destinations(0)
            ->set_accumulate(true);
        moveByHost(at(mutant, site));
        return true;
      });
}

/// Operands that read the data of one microbatch.
std::vector<Site> microbatchReads(const pb::Plan &plan) {
  return operandsOf(plan, [](const pb::Operation &, const OperandSpec &,
                             const pb::Operand &operand) {
    return operand.iteration_stride() != 0;
  });
}

std::vector<pb::Plan> sameMicrobatch(const pb::Plan &plan) {
  if (!repeats(plan))
    return {};
  return mutateAt(plan, microbatchReads(plan),
                  [](pb::Plan &mutant, const Site &site) {
                    operandAt(mutant, site).set_iteration_stride(0);
                    return true;
                  });
}

std::vector<pb::Plan> overlapMicrobatches(const pb::Plan &plan) {
  if (!repeats(plan))
    return {};
  return mutateAt(
      plan, microbatchReads(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Operand &operand = operandAt(mutant, site);
        operand.set_iteration_stride(operand.iteration_stride() / 8 * 4);
        return true;
      });
}

std::vector<pb::Plan> countFewer(const pb::Plan &plan) {
  if (!repeats(plan))
    return {};
  return mutateAt(plan,
                  sitesOf(plan,
                          [&](const pb::Operation &op) {
                            return isKernel(plan, op, "count_labels");
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    pb::Operand &labels =
                        *at(mutant, site).mutable_kernel()->mutable_operands(0);
                    labels.set_dims(0, labels.dims(0) - 1);
                    return true;
                  });
}

std::vector<pb::Plan> repeatMore(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions())
      if (region.kind() == pb::Region::BODY)
        region.set_repeat(region.repeat() + 1);
    return true;
  });
}

} // namespace

std::vector<Kind> mutate::microbatchKinds() {
  return {
      {"skip-first",
       "a sum lacks the first microbatch",
       Expect::Refused,
       {"exactly-once"},
       skipFirst},
      {"skip-last",
       "a sum lacks the last microbatch",
       Expect::Refused,
       {"exactly-once"},
       skipLast},
      {"only-last",
       "a sum has the last microbatch only",
       Expect::Refused,
       {"exactly-once", "undefined-read"},
       onlyLast},
      {"overwrite",
       "each microbatch overwrites the sum",
       Expect::Refused,
       {"exactly-once"},
       overwrite},
      {"accumulate-too-much",
       "a microbatch's sum has those before it",
       Expect::Refused,
       {"exactly-once"},
       accumulateTooMuch},
      {"same-microbatch",
       "every iteration reads the first microbatch",
       Expect::Refused,
       {"exactly-once"},
       sameMicrobatch},
      {"overlap-microbatches",
       "iterations read overlapping microbatches",
       Expect::Refused,
       {"exactly-once"},
       overlapMicrobatches},
      {"count-fewer",
       "the labels of one microbatch are not counted",
       Expect::Refused,
       {"exactly-once"},
       countFewer},
      {"repeat-more",
       "the body runs once more",
       Expect::Refused,
       {"structure"},
       repeatMore},
  };
}
