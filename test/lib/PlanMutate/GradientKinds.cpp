//===- GradientKinds.cpp - Contributions and reductions -------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

std::vector<Site> reductions(const pb::Plan &plan, pb::Collective::Kind kind) {
  return sitesOf(plan, [&](const pb::Operation &op) {
    return isGradientReduction(op, kind);
  });
}

std::vector<Site> allReductions(const pb::Plan &plan) {
  return sitesOf(plan, [](const pb::Operation &op) {
    return op.has_collective() && parameterOf(op) >= 0 && !isWeightGather(op);
  });
}

bool contributes(const pb::Plan &plan, const pb::Operation &operation) {
  const KernelSpec *spec = kernelOf(plan, operation);
  if (!spec || spec->contribution != Contribution::Produces)
    return false;
  // The gradient of a frozen parameter may be left out.
  size_t count = static_cast<size_t>(operation.kernel().operands_size());
  for (size_t i = 0; i < count; ++i)
    if (operandSpec(*spec, i, count)->role == Role::Gradient)
      return true;
  return false;
}

/// The rank keeps the first shard of its own sum.
bool skip(pb::Plan &mutant, const Site &site) {
  pb::Operation &operation = at(mutant, site);
  pb::Collective collective = operation.collective();
  if (groupSize(mutant.mesh(), mutant.communicators(static_cast<int>(
                                   collective.communicator()))) == 1)
    return false;
  const pb::Operand &destination = collective.destinations(0);
  pb::Operand source = destination;
  source.set_buffer(collective.sources(0).buffer());
  source.set_offset(collective.sources(0).offset());
  source.clear_accumulate();
  if (source.buffer() == destination.buffer())
    return false;
  if (destination.accumulate()) {
    // Sums over microbatches stay what they are.
    pb::Kernel cast;
    cast.set_name(stringIndex(mutant, "cast"));
    cast.set_version(1);
    *cast.add_operands() = source;
    *cast.add_operands() = destination;
    *operation.mutable_kernel() = cast;
    return true;
  }
  pb::Copy copy;
  *copy.mutable_source() = source;
  *copy.mutable_destination() = destination;
  *operation.mutable_copy() = copy;
  return true;
}

std::vector<pb::Plan> skipScatter(const pb::Plan &plan) {
  return mutateAt(plan, reductions(plan, pb::Collective::REDUCE_SCATTER), skip);
}

std::vector<pb::Plan> skipAllReduce(const pb::Plan &plan) {
  return mutateAt(plan, reductions(plan, pb::Collective::ALL_REDUCE), skip);
}

/// What was reduced is reduced once more over the same axes.
std::vector<pb::Plan> reduceTwice(const pb::Plan &plan) {
  return mutateAt(
      plan, allReductions(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Operation again = at(mutant, site);
        pb::Collective &collective = *again.mutable_collective();
        if (groupSize(mutant.mesh(), mutant.communicators(static_cast<int>(
                                         collective.communicator()))) == 1)
          return false;
        collective.set_kind(pb::Collective::ALL_REDUCE);
        collective.mutable_destinations(0)->clear_accumulate();
        *collective.mutable_sources(0) = collective.destinations(0);
        moveByHost(again);
        insertBehind(mutant, site, again);
        return true;
      });
}

/// An addition to a gradient is made twice in each microbatch.
std::vector<pb::Plan> addTwice(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan,
              [](const pb::Operation &op) {
                pb::Operation copy = op;
                std::vector<pb::Operand *> operands = mutableOperands(copy);
                return std::any_of(
                    operands.begin(), operands.end(), [](pb::Operand *operand) {
                      return operand->accumulate() && !operand->dims().empty();
                    });
              }),
      [](pb::Plan &mutant, const Site &site) {
        insertBehind(mutant, site, at(mutant, site));
        return true;
      });
}

std::vector<pb::Plan> scatterHalf(const pb::Plan &plan) {
  return mutateAt(
      plan, reductions(plan, pb::Collective::REDUCE_SCATTER),
      [](pb::Plan &mutant, const Site &site) {
        pb::Collective &scatter = *at(mutant, site).mutable_collective();
        for (pb::Operand *operand :
             {scatter.mutable_sources(0), scatter.mutable_destinations(0)}) {
          if (operand->dims(0) % 2)
            return false;
          operand->set_dims(0, operand->dims(0) / 2);
        }
        moveByHost(at(mutant, site));
        return true;
      });
}

/// Fills of the rows behind a full gradient, which the scatter sends.
std::vector<Site> padFills(const pb::Plan &plan) {
  return sitesOf(plan, [](const pb::Operation &op) { return op.has_fill(); });
}

std::vector<pb::Plan> writePads(const pb::Plan &plan) {
  return mutateAt(plan, padFills(plan), [](pb::Plan &mutant, const Site &site) {
    at(mutant, site).mutable_fill()->set_byte_value(1);
    return true;
  });
}

std::vector<pb::Plan> leavePads(const pb::Plan &plan) {
  return mutateAt(plan, padFills(plan), [](pb::Plan &mutant, const Site &site) {
    eraseOperation(mutant, site);
    return true;
  });
}

/// The fill begins a row too early, in the gradient.
std::vector<pb::Plan> clearTooMuch(const pb::Plan &plan) {
  return mutateAt(plan, padFills(plan), [](pb::Plan &mutant, const Site &site) {
    pb::Operand &pads = *at(mutant, site).mutable_fill()->mutable_destination();
    uint64_t row = pads.dims_size() > 1
                       ? rowElements(pads) * dtypeSize(pads.dtype())
                       : dtypeSize(pads.dtype());
    if (pads.offset() < row)
      return false;
    pads.set_offset(pads.offset() - row);
    pads.set_dims(0, pads.dims(0) + 1);
    return true;
  });
}

std::vector<pb::Plan> dropContribution(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [&](const pb::Operation &op) {
                            const KernelSpec *spec = kernelOf(plan, op);
                            return spec && contributes(plan, op) &&
                                   spec->operands.back().role == Role::Gradient;
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    pb::Operation &operation = at(mutant, site);
                    pb::Operand gradient =
                        *operation.kernel().operands().rbegin();
                    gradient.clear_accumulate();
                    *operation.mutable_fill()->mutable_destination() = gradient;
                    return true;
                  });
}

/// Replaces an operand of a gradient kernel by the same operand of another one,
/// of the same shape and from another buffer.
std::vector<pb::Plan> exchangeOperand(
    const pb::Plan &plan,
    const std::function<bool(const KernelSpec &, const OperandSpec &)> &test) {
  std::vector<Site> sites =
      operandsOf(plan, [&](const pb::Operation &op, const OperandSpec &spec,
                           const pb::Operand &) {
        return contributes(plan, op) && test(*kernelOf(plan, op), spec);
      });
  return mutateAt(plan, sites, [&](pb::Plan &mutant, const Site &site) {
    pb::Operand &operand = operandAt(mutant, site);
    // Preferably one that is near, so that it is still there.
    const pb::Operand *best = nullptr;
    int distance = 0;
    for (const Site &other : sites) {
      const pb::Operand &source = operandAt(plan, other);
      int away = std::abs(other.operation - site.operation);
      if (other.region != site.region || source.buffer() == operand.buffer() ||
          source.dtype() != operand.dtype() ||
          source.dims_size() != operand.dims_size() ||
          !std::equal(source.dims().begin(), source.dims().end(),
                      operand.dims().begin()) ||
          (best && away >= distance))
        continue;
      best = &source;
      distance = away;
    }
    if (!best)
      return false;
    pb::Operand copy = *best;
    operand = copy;
    return true;
  });
}

std::vector<pb::Plan> otherActivation(const pb::Plan &plan) {
  return exchangeOperand(plan, [](const KernelSpec &, const OperandSpec &spec) {
    return spec.identifiesUse && spec.role == Role::Value;
  });
}

/// Only of parameters that another kernel passes the gradient on for, or that
/// are added to the result of another: elsewhere nothing says which gradient.
std::vector<pb::Plan> otherCotangent(const pb::Plan &plan) {
  return exchangeOperand(
      plan, [](const KernelSpec &kernel, const OperandSpec &operand) {
        return operand.cotangent &&
               (kernel.name == "linear_wgrad" || kernel.name == "bias_grad");
      });
}

/// Two parameters of one shape get each other's gradient.
std::vector<pb::Plan> swapGradients(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (int p = 0; p < plan.parameters_size(); ++p)
    if (int other = neighbour(plan, p);
        other >= 0 && plan.parameters(p).gradient_buffer_plus1())
      sites.push_back({0, p, other});
  return mutateAt(plan, sites, [](pb::Plan &mutant, const Site &site) {
    uint32_t a = mutant.parameters(site.operation).gradient_buffer_plus1() - 1;
    uint32_t b = mutant.parameters(site.part).gradient_buffer_plus1() - 1;
    bool any = false;
    // Apart from everything, so that only what they hold is wrong.
    for (uint32_t buffer : {a, b})
      mutant.mutable_buffers(static_cast<int>(buffer))
          ->set_offset(arenaEnd(mutant));
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions()) {
      if (region.kind() != pb::Region::BODY)
        continue;
      for (pb::Operation &operation : *region.mutable_operations())
        for (pb::Operand *operand : mutableOperands(operation))
          if (operand->buffer() == a || operand->buffer() == b) {
            operand->set_buffer(operand->buffer() == a ? b : a);
            any = true;
          }
    }
    return any;
  });
}

std::vector<pb::Plan> relabelGradient(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan,
              [&](const pb::Operation &op) { return contributes(plan, op); }),
      [](pb::Plan &mutant, const Site &site) {
        int other = neighbour(mutant, parameterOf(at(mutant, site)));
        at(mutant, site)
            .mutable_kernel()
            ->set_parameter_plus1(static_cast<uint32_t>(other + 1));
        return other >= 0;
      });
}

/// A sum of contributions has one of them twice and lacks another.
std::vector<pb::Plan> repeatTerm(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [&](const pb::Operation &op) {
                            return isKernel(plan, op, "add") &&
                                   op.kernel().operands_size() > 2;
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    pb::Kernel &kernel = *at(mutant, site).mutable_kernel();
                    // Sums of a body's gradients or of squared norms, not of
                    // activations.
                    bool gradients = kernel.operands(0).dims().empty();
                    for (const pb::Operation &op :
                         regionAt(mutant, site).operations())
                      if (op.has_collective() && parameterOf(op) >= 0)
                        gradients |= op.collective().destinations(0).buffer() ==
                                         kernel.operands(0).buffer() ||
                                     op.collective().sources(0).buffer() ==
                                         kernel.operands(2).buffer();
                    *kernel.mutable_operands(1) = kernel.operands(0);
                    return gradients;
                  });
}

std::vector<pb::Plan> maximum(const pb::Plan &plan) {
  return mutateAt(
      plan, allReductions(plan), [](pb::Plan &mutant, const Site &site) {
        at(mutant, site).mutable_collective()->set_reduce(pb::Collective::MAX);
        moveByHost(at(mutant, site));
        return true;
      });
}

} // namespace

std::vector<Kind> mutate::gradientKinds() {
  return {
      {"skip-reduce-scatter",
       "a rank keeps its own sum instead of scattering",
       Expect::Refused,
       {"exactly-once", "role"},
       skipScatter},
      {"skip-all-reduce",
       "a rank keeps its own sum instead of reducing",
       Expect::Refused,
       {"exactly-once"},
       skipAllReduce},
      {"reduce-twice",
       "a reduced gradient is reduced once more",
       Expect::Refused,
       {"exactly-once"},
       reduceTwice},
      {"add-twice",
       "a gradient is accumulated twice",
       Expect::Refused,
       {"exactly-once"},
       addTwice},
      {"scatter-half",
       "a reduce-scatter sends half of the gradient",
       Expect::Refused,
       {"pad"},
       scatterHalf},
      {"write-pads",
       "the rows behind a gradient are not zero",
       Expect::Refused,
       {"pad", "role"},
       writePads},
      {"leave-pads",
       "the rows behind a gradient are what was there",
       Expect::Refused,
       {"undefined-read"},
       leavePads},
      {"clear-too-much",
       "the last row of a gradient is cleared",
       Expect::Refused,
       {"pad"},
       clearTooMuch},
      {"drop-contribution",
       "a contribution is zero",
       Expect::Refused,
       {"exactly-once"},
       dropContribution},
      {"other-activation",
       "a contribution is computed from another activation",
       Expect::Refused,
       {"exactly-once", "undefined-read"},
       otherActivation},
      {"other-cotangent",
       "a contribution is computed from another incoming gradient",
       Expect::Refused,
       {"exactly-once", "undefined-read"},
       otherCotangent},
      {"swap-gradients",
       "two parameters have each other's gradient",
       Expect::Refused,
       {"exactly-once"},
       swapGradients},
      {"relabel-gradient",
       "a gradient kernel names another parameter",
       Expect::Refused,
       {"exactly-once"},
       relabelGradient},
      {"repeat-term",
       "a sum has one term twice instead of another",
       Expect::Refused,
       {"exactly-once"},
       repeatTerm},
      {"maximum",
       "a gradient is reduced to the maximum",
       Expect::Refused,
       {"partial"},
       maximum},
  };
}
