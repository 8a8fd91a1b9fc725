//===- WeightKinds.cpp - Gathers, versions and updates --------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

std::vector<Site> gathers(const pb::Plan &plan) {
  return sitesOf(plan, isWeightGather);
}

std::vector<Site> updateSites(const pb::Plan &plan) {
  return sitesOf(plan,
                 [&](const pb::Operation &op) { return updates(plan, op); });
}

std::vector<Site> weightOperands(const pb::Plan &plan) {
  return operandsOf(
      plan, [](const pb::Operation &, const OperandSpec &spec,
               const pb::Operand &) { return spec.role == Role::Weight; });
}

/// Whether the operand is not the first weight that its kernel reads.
bool isSecondWeight(const pb::Plan &plan, const Site &site) {
  const pb::Kernel &kernel = at(plan, site).kernel();
  const KernelSpec &spec = *lookupKernel(kernelName(plan, kernel));
  const auto count = static_cast<size_t>(kernel.operands_size());
  for (size_t i = 0; i < static_cast<size_t>(site.part); ++i)
    if (operandSpec(spec, i, count)->role == Role::Weight)
      return true;
  return false;
}

std::vector<pb::Plan> gatherNeighbour(const pb::Plan &plan) {
  return mutateAt(plan, gathers(plan), [](pb::Plan &mutant, const Site &site) {
    pb::Collective &gather = *at(mutant, site).mutable_collective();
    int other = neighbour(mutant, parameterOf(at(mutant, site)));
    if (other < 0)
      return false;
    shardOf(mutant, site).set_buffer(mutant.parameters(other).compute_buffer());
    // With a label that fits what is sent, only the reader can tell.
    gather.set_parameter_plus1(static_cast<uint32_t>(other + 1));
    return true;
  });
}

/// The gathered weight is what an earlier step left there.
std::vector<pb::Plan> gatherStale(const pb::Plan &plan) {
  return mutateAt(plan, gathers(plan), [](pb::Plan &mutant, const Site &site) {
    int index = static_cast<int>(
        at(mutant, site).collective().destinations(0).buffer());
    uint64_t offset = arenaEnd(mutant);
    mutant.mutable_buffers(index)->set_offset(offset);
    mutant.mutable_buffers(index)->set_kind(pb::Buffer::PERSISTENT);
    std::optional<Site> copy = ownCopyOf(mutant, site);
    eraseOperation(mutant, site);
    if (copy)
      eraseOperation(mutant, *copy);
    return true;
  });
}

std::vector<pb::Plan> dropGather(const pb::Plan &plan) {
  return mutateAt(plan, gathers(plan), [](pb::Plan &mutant, const Site &site) {
    eraseOperation(mutant, site);
    return true;
  });
}

std::vector<pb::Plan> gatherHalf(const pb::Plan &plan) {
  return mutateAt(plan, gathers(plan), [](pb::Plan &mutant, const Site &site) {
    for (pb::Operand *operand : gatherOperands(mutant, site)) {
      if (operand->dims(0) % 2)
        return false;
      operand->set_dims(0, operand->dims(0) / 2);
      for (pb::AxisStride &stride : *operand->mutable_rank_strides())
        stride.set_stride(stride.stride() / 2);
    }
    return true;
  });
}

/// Over other axes that have as many ranks.
bool otherAxes(pb::Plan &mutant, const Site &site) {
  pb::Collective &collective = *at(mutant, site).mutable_collective();
  const pb::Communicator &right =
      mutant.communicators(static_cast<int>(collective.communicator()));
  uint64_t ranks = groupSize(mutant.mesh(), right);
  for (int i = 0; i < mutant.communicators_size(); ++i) {
    const pb::Communicator &other = mutant.communicators(i);
    if (groupSize(mutant.mesh(), other) == ranks && ranks > 1 &&
        !(other.axes_size() == right.axes_size() &&
          std::equal(right.axes().begin(), right.axes().end(),
                     other.axes().begin()))) {
      collective.set_communicator(static_cast<uint32_t>(i));
      moveByHost(at(mutant, site));
      return true;
    }
  }
  return false;
}

/// The pieces are then in the order of the other axes.
std::vector<pb::Plan> gatherOtherAxes(const pb::Plan &plan) {
  return mutateAt(plan, gathers(plan), [](pb::Plan &mutant, const Site &site) {
    if (!otherAxes(mutant, site))
      return false;
    const pb::Collective &gather = at(mutant, site).collective();
    const auto &axes =
        mutant.communicators(static_cast<int>(gather.communicator())).axes();
    for (pb::Operand *operand : gatherOperands(mutant, site)) {
      if (operand->rank_strides().empty())
        continue;
      operand->clear_rank_strides();
      uint64_t stride = *byteExtent(*operand);
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        pb::AxisStride &of = *operand->add_rank_strides();
        of.set_axis(*axis);
        of.set_stride(stride);
        stride *= mutant.mesh().axes(static_cast<int>(*axis)).degree();
      }
    }
    return true;
  });
}

std::vector<pb::Plan> reduceOtherAxes(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [](const pb::Operation &op) {
                            return op.has_collective() &&
                                   parameterOf(op) >= 0 && !isWeightGather(op);
                          }),
                  otherAxes);
}

/// A kernel reads the weight of another parameter, just as large.
std::vector<pb::Plan> readNeighbour(const pb::Plan &plan) {
  std::vector<Site> sites = weightOperands(plan);
  return mutateAt(plan, sites, [&](pb::Plan &mutant, const Site &site) {
    pb::Operand &operand = operandAt(mutant, site);
    for (const Site &other : sites) {
      const pb::Operand &source = operandAt(plan, other);
      if (parameterOf(at(plan, other)) == parameterOf(at(plan, site)) ||
          source.buffer() == operand.buffer() ||
          source.dtype() != operand.dtype() ||
          source.dims_size() != operand.dims_size() ||
          !std::equal(source.dims().begin(), source.dims().end(),
                      operand.dims().begin()))
        continue;
      operand = source;
      return true;
    }
    return false;
  });
}

std::vector<pb::Plan> relabelKernel(const pb::Plan &plan) {
  return mutateAt(
      plan, weightOperands(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Kernel &kernel = *at(mutant, site).mutable_kernel();
        const bool second = isSecondWeight(mutant, site);
        const uint32_t plus1 =
            second ? kernel.second_parameter_plus1() : kernel.parameter_plus1();
        int other = neighbour(mutant, static_cast<int>(plus1) - 1);
        if (second)
          kernel.set_second_parameter_plus1(static_cast<uint32_t>(other + 1));
        else
          kernel.set_parameter_plus1(static_cast<uint32_t>(other + 1));
        return other >= 0;
      });
}

std::vector<pb::Plan> shiftRows(const pb::Plan &plan) {
  return mutateAt(
      plan, weightOperands(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Operand &operand = operandAt(mutant, site);
        operand.set_offset(operand.offset() +
                           rowElements(operand) * dtypeSize(operand.dtype()));
        pb::Buffer &buffer =
            *mutant.mutable_buffers(static_cast<int>(operand.buffer()));
        if (buffer.kind() != pb::Buffer::TRANSIENT)
          return false;
        // Room for the row, where nothing else lies.
        uint64_t size = buffer.size();
        buffer.set_offset(arenaEnd(mutant));
        buffer.set_size(size + rowElements(operand) * 8);
        return true;
      });
}

std::vector<pb::Plan> updateInBody(const pb::Plan &plan) {
  return mutateAt(
      plan, updateSites(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Operation moved = at(mutant, site);
        eraseOperation(mutant, site);
        moved.clear_waits();
        moved.set_event_plus1(0);
        pb::Program &program = *mutant.mutable_programs(0);
        *program.mutable_regions(site.region - 1)->add_operations() = moved;
        return true;
      });
}

std::vector<pb::Plan> dropUpdate(const pb::Plan &plan) {
  return mutateAt(plan, updateSites(plan),
                  [](pb::Plan &mutant, const Site &site) {
                    eraseOperation(mutant, site);
                    return true;
                  });
}

std::vector<pb::Plan> doubleUpdate(const pb::Plan &plan) {
  return mutateAt(plan, updateSites(plan),
                  [](pb::Plan &mutant, const Site &site) {
                    insertBehind(mutant, site, at(mutant, site));
                    return true;
                  });
}

std::vector<pb::Plan> freeze(const pb::Plan &plan) {
  return mutateAt(plan, updateSites(plan),
                  [](pb::Plan &mutant, const Site &site) {
                    mutant.mutable_parameters(parameterOf(at(mutant, site)))
                        ->set_frozen(true);
                    return true;
                  });
}

/// An update whose operand of a role is the buffer that the neighbour has
/// there.
std::vector<pb::Plan> updateWithNeighbours(const pb::Plan &plan, Role role) {
  return mutateAt(
      plan, updateSites(plan), [&](pb::Plan &mutant, const Site &site) {
        int other = neighbour(mutant, parameterOf(at(mutant, site)));
        for (const Site &update : updateSites(plan)) {
          if (other < 0 || parameterOf(at(plan, update)) != other)
            continue;
          pb::Kernel &kernel = *at(mutant, site).mutable_kernel();
          const pb::Kernel &source = at(plan, update).kernel();
          size_t count = static_cast<size_t>(kernel.operands_size());
          const KernelSpec &spec = *kernelOf(plan, at(plan, site));
          for (size_t i = 0; i < count; ++i)
            if (operandSpec(spec, i, count)->role == role) {
              *kernel.mutable_operands(static_cast<int>(i)) =
                  source.operands(static_cast<int>(i));
              return true;
            }
        }
        return false;
      });
}

std::vector<pb::Plan> otherState(const pb::Plan &plan) {
  return updateWithNeighbours(plan, Role::State);
}
std::vector<pb::Plan> otherGradient(const pb::Plan &plan) {
  return updateWithNeighbours(plan, Role::Gradient);
}
std::vector<pb::Plan> otherPublish(const pb::Plan &plan) {
  return updateWithNeighbours(plan, Role::Compute);
}

std::vector<pb::Plan> dropPublish(const pb::Plan &plan) {
  return mutateAt(
      plan, updateSites(plan), [&](pb::Plan &mutant, const Site &site) {
        auto &operands = *at(mutant, site).mutable_kernel()->mutable_operands();
        size_t count = static_cast<size_t>(operands.size());
        if (operandSpec(*kernelOf(plan, at(plan, site)), count - 1, count)
                ->role != Role::Compute)
          return false;
        operands.RemoveLast();
        return true;
      });
}

} // namespace

std::vector<Kind> mutate::weightKinds() {
  return {
      {"gather-neighbour",
       "a gather sends the parameter next to it",
       Expect::Refused,
       {"weight-version"},
       gatherNeighbour},
      {"gather-stale",
       "a weight is what the step before gathered",
       Expect::Refused,
       {"weight-version"},
       gatherStale},
      {"drop-gather",
       "a gather is not there",
       Expect::Refused,
       {"undefined-read"},
       dropGather},
      {"gather-half",
       "a gather sends half of the shard",
       Expect::Refused,
       {"weight-version"},
       gatherHalf},
      {"gather-other-axes",
       "a gather is over the ranks of another axis",
       Expect::Refused,
       {"weight-version"},
       gatherOtherAxes},
      {"reduce-other-axes",
       "a reduction is over the ranks of another axis",
       Expect::Refused,
       {"exactly-once"},
       reduceOtherAxes},
      {"read-neighbour",
       "a kernel reads a weight of the same shape",
       Expect::Refused,
       {"weight-version", "undefined-read"},
       readNeighbour},
      {"relabel-kernel",
       "a kernel names a parameter of the same shape",
       Expect::Refused,
       {"weight-version"},
       relabelKernel},
      {"shift-rows",
       "a kernel reads a weight from its second row on",
       Expect::Refused,
       {"weight-version", "undefined-read"},
       shiftRows},
      {"update-in-body",
       "a parameter is updated by each microbatch",
       Expect::Refused,
       {"weight-version"},
       updateInBody},
      {"drop-update",
       "a parameter is not updated",
       Expect::Refused,
       {"exactly-once"},
       dropUpdate},
      {"double-update",
       "a parameter is updated twice",
       Expect::Refused,
       {"exactly-once"},
       doubleUpdate},
      {"freeze",
       "a parameter that is updated is called frozen",
       Expect::Refused,
       {"exactly-once"},
       freeze},
      {"other-state",
       "an update advances the state of another parameter",
       Expect::Refused,
       {"role"},
       otherState},
      {"other-gradient",
       "an update reads the gradient of another parameter",
       Expect::Refused,
       {"exactly-once"},
       otherGradient},
      {"other-publish",
       "an update publishes to another parameter",
       Expect::Refused,
       {"role"},
       otherPublish},
      {"drop-publish",
       "an update leaves the compute copy as it was",
       Expect::Refused,
       {"role"},
       dropPublish},
  };
}
