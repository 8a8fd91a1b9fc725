//===- ScalarKinds.cpp - Loss, count, norm and scale ----------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/Layout.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

bool isScalarReduction(const pb::Operation &operation) {
  return isCollective(operation, pb::Collective::ALL_REDUCE) &&
         parameterOf(operation) < 0 &&
         operation.collective().sources(0).dims().empty();
}

std::vector<pb::Plan> skipReduction(const pb::Plan &plan) {
  return mutateAt(
      plan, sitesOf(plan, isScalarReduction),
      [](pb::Plan &mutant, const Site &site) {
        pb::Operation &operation = at(mutant, site);
        pb::Collective reduction = operation.collective();
        if (groupSize(mutant.mesh(), mutant.communicators(static_cast<int>(
                                         reduction.communicator()))) == 1 ||
            reduction.sources(0).buffer() == reduction.destinations(0).buffer())
          return false;
        pb::Copy copy;
        *copy.mutable_source() = reduction.sources(0);
        *copy.mutable_destination() = reduction.destinations(0);
        *operation.mutable_copy() = copy;
        return true;
      });
}

std::vector<pb::Plan> reduceTwice(const pb::Plan &plan) {
  return mutateAt(plan, sitesOf(plan, isScalarReduction),
                  [](pb::Plan &mutant, const Site &site) {
                    pb::Operation again = at(mutant, site);
                    pb::Collective &reduction = *again.mutable_collective();
                    *reduction.mutable_sources(0) = reduction.destinations(0);
                    insertBehind(mutant, site, again);
                    return groupSize(mutant.mesh(),
                                     mutant.communicators(static_cast<int>(
                                         reduction.communicator()))) > 1;
                  });
}

/// The square of one parameter's gradient is not in the norm.
std::vector<pb::Plan> dropNormTerm(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [&](const pb::Operation &op) {
                            return isKernel(plan, op, "add") &&
                                   op.kernel().operands_size() > 2 &&
                                   op.kernel().operands(0).dtype() == pb::F64;
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    at(mutant, site)
                        .mutable_kernel()
                        ->mutable_operands()
                        ->DeleteSubrange(1, 1);
                    return true;
                  });
}

/// The norm has a gradient's square where another one's should be.
std::vector<pb::Plan> otherNormTerm(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [&](const pb::Operation &op) {
                            return isKernel(plan, op, "sum_squares");
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    pb::Operand &squared =
                        *at(mutant, site).mutable_kernel()->mutable_operands(0);
                    for (int p = 0; p < mutant.parameters_size(); ++p) {
                      int other = neighbour(mutant, p);
                      if (mutant.parameters(p).gradient_buffer_plus1() !=
                              squared.buffer() + 1 ||
                          other < 0)
                        continue;
                      squared.set_buffer(
                          mutant.parameters(other).gradient_buffer_plus1() - 1);
                      return true;
                    }
                    return false;
                  });
}

std::vector<pb::Plan> keepAll(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan,
              [&](const pb::Operation &op) {
                return isKernel(plan, op, "keep_first");
              }),
      [](pb::Plan &mutant, const Site &site) {
        at(mutant, site).mutable_kernel()->mutable_attributes(0)->set_i(0);
        return mutant.mesh().axes_size() > 0;
      });
}

/// An update scales its gradient by the loss.
std::vector<pb::Plan> otherScale(const pb::Plan &plan) {
  return mutateAt(
      plan,
      operandsOf(plan,
                 [](const pb::Operation &, const OperandSpec &spec,
                    const pb::Operand &) { return spec.name == "scale"; }),
      [](pb::Plan &mutant, const Site &site) {
        operandAt(mutant, site).set_buffer(*ioBuffer(mutant, "loss"));
        return true;
      });
}

/// An update takes its rates from the state of its parameter.
std::vector<pb::Plan> otherHyper(const pb::Plan &plan) {
  return mutateAt(
      plan,
      operandsOf(plan,
                 [](const pb::Operation &, const OperandSpec &spec,
                    const pb::Operand &) { return spec.name == "hyper"; }),
      [](pb::Plan &mutant, const Site &site) {
        // Of another parameter, so that the operands stay apart.
        for (const pb::Parameter &p : mutant.parameters())
          for (uint32_t state : p.state_buffers())
            if (mutant.buffers(static_cast<int>(state)).size() >= 32 &&
                &p != &mutant.parameters(parameterOf(at(mutant, site)))) {
              operandAt(mutant, site).set_buffer(state);
              return true;
            }
        return false;
      });
}

} // namespace

std::vector<Kind> mutate::scalarKinds() {
  return {
      {"skip-scalar-reduction",
       "loss, count or norm are one rank's",
       Expect::Refused,
       {"partial"},
       skipReduction},
      {"reduce-scalar-twice",
       "loss, count or norm are reduced twice",
       Expect::Refused,
       {"partial"},
       reduceTwice},
      {"drop-norm-term",
       "the norm lacks a gradient",
       Expect::Refused,
       {"exactly-once"},
       dropNormTerm},
      {"other-norm-term",
       "the norm has a gradient twice",
       Expect::Refused,
       {"exactly-once"},
       otherNormTerm},
      {"keep-all",
       "every rank adds a replicated square to the norm",
       Expect::Refused,
       {"partial"},
       keepAll},
      {"other-scale",
       "an update scales its gradient by the loss",
       Expect::Refused,
       {"role"},
       otherScale},
      {"other-hyper",
       "an update reads its rates from a moment",
       Expect::Refused,
       {"role"},
       otherHyper},
  };
}
