//===- OwnPieceKinds.cpp - Copies of what a rank has itself ---------------===//
//
// Of gathers in place: a copy puts the rank's own shard where the gather finds
// it, at an address that depends on the rank.
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/Operand.h"

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

/// What `change` does to a plan, given the gather and its copy.
using Change = bool (*)(pb::Plan &, const Site &gather, const Site &copy);

std::vector<pb::Plan> inPlace(const pb::Plan &plan, Change change) {
  std::vector<Site> sites;
  for (const Site &gather : sitesOf(plan, isWeightGather))
    if (ownCopyOf(plan, gather))
      sites.push_back(gather);
  return mutateAt(plan, sites, [&](pb::Plan &mutant, const Site &gather) {
    return change(mutant, gather, *ownCopyOf(mutant, gather));
  });
}

pb::Operand &placeOf(pb::Plan &plan, const Site &copy) {
  return *at(plan, copy).mutable_copy()->mutable_destination();
}

uint64_t rowBytes(const pb::Operand &operand) {
  return rowElements(operand) * dtypeSize(operand.dtype());
}

/// The destination of a gather, apart from all else and with room for a row
/// more.
void makeRoom(pb::Plan &plan, const pb::Operand &place) {
  uint64_t end = arenaEnd(plan);
  pb::Buffer &buffer = *plan.mutable_buffers(static_cast<int>(place.buffer()));
  buffer.set_offset(end);
  buffer.set_size(buffer.size() + rowBytes(place));
}

/// The gather's label stays: that of the weight that belongs there.
std::vector<pb::Plan> copyNeighbour(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &gather, const Site &) {
    int other = neighbour(mutant, parameterOf(at(mutant, gather)));
    if (other < 0)
      return false;
    shardOf(mutant, gather)
        .set_buffer(mutant.parameters(other).compute_buffer());
    return true;
  });
}

std::vector<pb::Plan> copyToFirst(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    placeOf(mutant, copy).clear_rank_strides();
    return true;
  });
}

std::vector<pb::Plan> copyElsewhere(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    pb::Operand &place = placeOf(mutant, copy);
    place.set_buffer(addBuffer(
        mutant, mutant.buffers(static_cast<int>(place.buffer())).size()));
    return true;
  });
}

std::vector<pb::Plan> copyBehind(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    pb::Operand &place = placeOf(mutant, copy);
    makeRoom(mutant, place);
    place.set_offset(place.offset() + rowBytes(place));
    return true;
  });
}

std::vector<pb::Plan> copyCloser(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    pb::Operand &place = placeOf(mutant, copy);
    pb::AxisStride &stride = *place.mutable_rank_strides(0);
    stride.set_stride(stride.stride() - rowBytes(place));
    return true;
  });
}

std::vector<pb::Plan> gatherCloser(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &gather, const Site &) {
    pb::Operand &source =
        *at(mutant, gather).mutable_collective()->mutable_sources(0);
    pb::AxisStride &stride = *source.mutable_rank_strides(0);
    stride.set_stride(stride.stride() - rowBytes(source));
    return true;
  });
}

std::vector<pb::Plan> gatherBehind(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &gather, const Site &) {
    pb::Operand &source =
        *at(mutant, gather).mutable_collective()->mutable_sources(0);
    makeRoom(mutant, source);
    source.set_offset(source.offset() + rowBytes(source));
    return true;
  });
}

std::vector<pb::Plan> dropCopy(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    eraseOperation(mutant, copy);
    return true;
  });
}

std::vector<pb::Plan> copyHalf(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &, const Site &copy) {
    for (pb::Operand *operand : mutableOperands(at(mutant, copy))) {
      if (operand->dims(0) % 2)
        return false;
      operand->set_dims(0, operand->dims(0) / 2);
    }
    return true;
  });
}

/// On the gather's stream, so that they are ordered.
std::vector<pb::Plan> copyLate(const pb::Plan &plan) {
  return inPlace(plan,
                 [](pb::Plan &mutant, const Site &gather, const Site &copy) {
                   insertBehind(mutant, gather, at(mutant, copy));
                   eraseOperation(mutant, copy);
                   return true;
                 });
}

/// The first of two gathers takes the piece.
std::vector<pb::Plan> gatherTwice(const pb::Plan &plan) {
  return inPlace(plan, [](pb::Plan &mutant, const Site &gather, const Site &) {
    insertBehind(mutant, gather, at(mutant, gather));
    return true;
  });
}

/// Where the gather finds the piece has been cleared.
std::vector<pb::Plan> clearCopy(const pb::Plan &plan) {
  return inPlace(
      plan, [](pb::Plan &mutant, const Site &gather, const Site &copy) {
        pb::Operation fill;
        *fill.mutable_fill()->mutable_destination() =
            at(mutant, gather).collective().destinations(0);
        insertBehind(mutant, copy, fill);
        // What waits for the copy waits for this.
        Site behind = copy;
        ++behind.operation;
        at(mutant, behind).set_event_plus1(at(mutant, copy).event_plus1());
        at(mutant, copy).set_event_plus1(0);
        return true;
      });
}

/// Of the gather and what is before it on its stream, nothing waits for a copy.
std::vector<pb::Plan> dropCopyWaits(const pb::Plan &plan) {
  return inPlace(
      plan, [](pb::Plan &mutant, const Site &gather, const Site &copy) {
        pb::Region &region = regionAt(mutant, gather);
        uint32_t copies = at(mutant, copy).stream();
        bool any = false;
        for (int i = copy.operation; i <= gather.operation; ++i) {
          pb::Operation &waiting = *region.mutable_operations(i);
          if (waiting.stream() == copies)
            continue;
          for (int w = waiting.waits_size(); w-- > 0;)
            for (const pb::Operation &other : region.operations())
              if (other.event_plus1() == waiting.waits(w).event() + 1 &&
                  other.stream() == copies) {
                waiting.mutable_waits()->DeleteSubrange(w, 1);
                any = true;
                break;
              }
        }
        return any;
      });
}

} // namespace

std::vector<Kind> mutate::ownPieceKinds() {
  return {
      {"own-neighbour",
       "a copy puts the parameter next to it in place",
       Expect::Refused,
       {"weight-version"},
       copyNeighbour},
      {"own-first-slot",
       "every rank copies to the place of the first",
       Expect::Refused,
       {"undefined-read"},
       copyToFirst},
      {"own-elsewhere",
       "a copy goes to another buffer",
       Expect::Refused,
       {"undefined-read"},
       copyElsewhere},
      {"own-behind",
       "a copy goes a row further than the gather's source",
       Expect::Refused,
       {"undefined-read"},
       copyBehind},
      {"own-closer",
       "copies of the ranks are a row closer than the gather's sources",
       Expect::Refused,
       {"undefined-read"},
       copyCloser},
      {"own-gather-closer",
       "the sources of the ranks are a row closer than the pieces gathered",
       Expect::Refused,
       {"structure"},
       gatherCloser},
      {"own-gather-behind",
       "a gather's source is a row further than its piece",
       Expect::Refused,
       {"structure"},
       gatherBehind},
      {"own-half",
       "a copy has half of the shard",
       Expect::Refused,
       {"undefined-read"},
       copyHalf},
      {"own-drop",
       "a copy is not there",
       Expect::Refused,
       {"undefined-read"},
       dropCopy},
      {"own-late",
       "a copy comes after the gather",
       Expect::Refused,
       {"undefined-read"},
       copyLate},
      {"own-twice",
       "what was gathered in place is gathered again without a copy",
       Expect::Refused,
       {"undefined-read"},
       gatherTwice},
      {"own-cleared",
       "a copy is cleared before it is gathered",
       Expect::Refused,
       {"undefined-read"},
       clearCopy},
      {"own-drop-wait",
       "a gather does not wait for its copy",
       Expect::Refused,
       {"race"},
       dropCopyWaits},
  };
}
