//===- HarmlessKinds.cpp - Changes that no rule may refuse ----------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Support/RoundUp.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

uint64_t roundedSize(const pb::Buffer &buffer) {
  return gtp::roundUp(buffer.size(), 256);
}

/// Every name that only people read.
std::vector<pb::Plan> renameAll(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    uint32_t count = 0;
    auto rename = [&](auto &message) {
      message.set_name(
          stringIndex(mutant, "renamed." + std::to_string(count++)));
    };
    std::vector<uint32_t> io;
    for (const auto *list :
         {&mutant.programs(0).inputs(), &mutant.programs(0).outputs()})
      for (const pb::Io &entry : *list)
        io.push_back(entry.buffer());
    for (int i = 0; i < mutant.buffers_size(); ++i)
      if (std::find(io.begin(), io.end(), static_cast<uint32_t>(i)) == io.end())
        rename(*mutant.mutable_buffers(i));
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions())
      for (pb::Operation &operation : *region.mutable_operations())
        operation.set_source(0);
    return true;
  });
}

/// Two operations of different streams, neighbours in the list, that do not
/// wait for each other change places.
std::vector<pb::Plan> reorder(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (const Site &site :
       sitesOf(plan, [](const pb::Operation &) { return true; })) {
    const pb::Region &region = regionAt(plan, site);
    if (site.operation + 1 == region.operations_size())
      continue;
    const pb::Operation &a = at(plan, site);
    const pb::Operation &b = region.operations(site.operation + 1);
    bool waits = std::any_of(b.waits().begin(), b.waits().end(),
                             [&](const pb::Wait &wait) {
                               return wait.event() + 1 == a.event_plus1();
                             });
    if (a.stream() != b.stream() && !waits)
      sites.push_back(site);
  }
  return mutateAt(plan, sites, [](pb::Plan &mutant, const Site &site) {
    regionAt(mutant, site)
        .mutable_operations()
        ->SwapElements(site.operation, site.operation + 1);
    return true;
  });
}

/// An operation also waits for the last one before it on another stream.
std::vector<pb::Plan> extraWait(const pb::Plan &plan) {
  return mutateAt(
      plan, sitesOf(plan, [](const pb::Operation &) { return true; }),
      [](pb::Plan &mutant, const Site &site) {
        pb::Region &region = regionAt(mutant, site);
        for (int i = site.operation - 1; i >= 0; --i) {
          if (region.operations(i).stream() == at(mutant, site).stream())
            continue;
          uint32_t event = eventOf(region, i);
          at(mutant, site).add_waits()->set_event(event);
          return true;
        }
        return false;
      });
}

/// A wait is made by the operation before it on its stream.
std::vector<pb::Plan> waitSooner(const pb::Plan &plan) {
  return mutateAt(plan, waitsOf(plan), [](pb::Plan &mutant, const Site &site) {
    pb::Region &region = regionAt(mutant, site);
    pb::Operation &waiter = at(mutant, site);
    pb::Wait wait = waiter.waits(site.part);
    for (int i = site.operation - 1; i >= 0; --i) {
      pb::Operation &earlier = *region.mutable_operations(i);
      if (earlier.event_plus1() == wait.event() + 1)
        return false; // recorded only here
      if (earlier.stream() != waiter.stream())
        continue;
      *earlier.add_waits() = wait;
      waiter.mutable_waits()->DeleteSubrange(site.part, 1);
      return true;
    }
    return false;
  });
}

std::vector<pb::Plan> extraEvent(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan,
              [](const pb::Operation &op) { return op.event_plus1() == 0; }),
      [](pb::Plan &mutant, const Site &site) {
        eventOf(regionAt(mutant, site), site.operation);
        return true;
      });
}

std::vector<pb::Plan> renumberEvents(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    bool any = false;
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions())
      for (pb::Operation &operation : *region.mutable_operations()) {
        if (operation.event_plus1())
          operation.set_event_plus1(region.events() + 1 -
                                    operation.event_plus1());
        for (pb::Wait &wait : *operation.mutable_waits())
          wait.set_event(region.events() - 1 - wait.event());
        any |= region.events() > 1;
      }
    return any;
  });
}

/// Everything on the compute stream, one after the other.
std::vector<pb::Plan> serialize(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions()) {
      region.set_events(0);
      for (pb::Operation &operation : *region.mutable_operations()) {
        operation.set_stream(0);
        operation.clear_waits();
        operation.set_event_plus1(0);
      }
    }
    return mutant.streams_size() > 1;
  });
}

std::vector<pb::Plan> renumberStreams(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    uint32_t last = static_cast<uint32_t>(mutant.streams_size() - 1);
    if (last < 2)
      return false;
    mutant.mutable_streams()->SwapElements(1, static_cast<int>(last));
    for (pb::Program &program : *mutant.mutable_programs())
      for (pb::Region &region : *program.mutable_regions())
        for (pb::Operation &operation : *region.mutable_operations()) {
          uint32_t stream = operation.stream();
          if (stream == 1 || stream == last)
            operation.set_stream(stream == 1 ? last : 1);
        }
    return true;
  });
}

/// The table of buffers backward.
std::vector<pb::Plan> renumberBuffers(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    uint32_t last = static_cast<uint32_t>(mutant.buffers_size() - 1);
    for (int i = 0; i < mutant.buffers_size() / 2; ++i)
      mutant.mutable_buffers()->SwapElements(i, static_cast<int>(last) - i);
    for (pb::Parameter &p : *mutant.mutable_parameters()) {
      p.set_compute_buffer(last - p.compute_buffer());
      if (p.master_buffer_plus1())
        p.set_master_buffer_plus1(last + 2 - p.master_buffer_plus1());
      if (p.gradient_buffer_plus1())
        p.set_gradient_buffer_plus1(last + 2 - p.gradient_buffer_plus1());
      for (uint32_t &state : *p.mutable_state_buffers())
        state = last - state;
    }
    for (pb::Program &program : *mutant.mutable_programs()) {
      for (auto *list : {program.mutable_inputs(), program.mutable_outputs()})
        for (pb::Io &io : *list)
          io.set_buffer(last - io.buffer());
      for (pb::Region &region : *program.mutable_regions())
        for (pb::Operation &operation : *region.mutable_operations())
          for (pb::Operand *operand : mutableOperands(operation))
            operand->set_buffer(last - operand->buffer());
    }
    return true;
  });
}

/// Every buffer that does not persist lies further on.
std::vector<pb::Plan> largerArena(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    for (pb::Buffer &buffer : *mutant.mutable_buffers())
      if (buffer.kind() != pb::Buffer::PERSISTENT)
        buffer.set_offset(buffer.offset() + 4096);
    return true;
  });
}

/// What lay first lies last.
std::vector<pb::Plan> mirror(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    uint64_t end = arenaEnd(mutant);
    for (pb::Buffer &buffer : *mutant.mutable_buffers())
      if (buffer.memory() == 0)
        buffer.set_offset(end - buffer.offset() - roundedSize(buffer));
    return true;
  });
}

/// No transient buffer shares an address with another one.
std::vector<pb::Plan> spread(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    uint64_t end = arenaEnd(mutant);
    for (pb::Buffer &buffer : *mutant.mutable_buffers())
      if (buffer.kind() == pb::Buffer::TRANSIENT) {
        buffer.set_offset(end);
        end += roundedSize(buffer);
      }
    return true;
  });
}

std::vector<pb::Plan> unusedEntries(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    mutant.add_strings("unused");
    mutant.add_constants()->add_values(1);
    mutant.add_layouts()->add_dims()->set_logical(1);
    mutant.add_communicators();
    mutant.add_streams()->set_kind(pb::Stream::REDUCE);
    return true;
  });
}

/// What is gathered is gathered again, to the same place; the own piece is put
/// there again too, which the first gather took.
std::vector<pb::Plan> gatherAgain(const pb::Plan &plan) {
  return mutateAt(
      plan, sitesOf(plan, isWeightGather),
      [](pb::Plan &mutant, const Site &site) {
        // The later one records the event.
        insertBehind(mutant, site, at(mutant, site));
        Site again = site;
        ++again.operation;
        if (std::optional<Site> copy = ownCopyOf(mutant, site)) {
          insertBehind(mutant, site, at(mutant, *copy));
          ++again.operation;
        }
        at(mutant, again).set_event_plus1(at(mutant, site).event_plus1());
        at(mutant, site).set_event_plus1(0);
        return true;
      });
}

/// Bytes that nothing reads are cleared.
std::vector<pb::Plan> uselessFill(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan, [](const pb::Operation &op) { return op.has_kernel(); }),
      [](pb::Plan &mutant, const Site &site) {
        pb::Operation fill;
        pb::Operand &bytes = *fill.mutable_fill()->mutable_destination();
        bytes.set_buffer(addBuffer(mutant, 1000));
        bytes.set_dtype(pb::U8);
        bytes.add_dims(1000);
        insertBehind(mutant, site, fill);
        return true;
      });
}

std::vector<pb::Plan> otherPredictions(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    mutant.mutable_claims()->set_step_ns(1);
    mutant.mutable_claims()->set_budget_bytes(uint64_t(1) << 40);
    mutant.mutable_provenance()->add_options("--anything");
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions())
      for (pb::Operation &operation : *region.mutable_operations())
        operation.set_duration(operation.duration() * 2 + 1);
    return true;
  });
}

std::vector<pb::Plan> spellDefaults(const pb::Plan &plan) {
  return mutateOnce(plan, [](pb::Plan &mutant) {
    for (pb::Region &region : *mutant.mutable_programs(0)->mutable_regions())
      for (pb::Operation &operation : *region.mutable_operations())
        for (pb::Operand *operand : mutableOperands(operation))
          if (operand->pitch() == 0 && !operand->dims().empty())
            operand->set_pitch(*operand->dims().rbegin());
    return true;
  });
}

} // namespace

std::vector<Kind> mutate::harmlessKinds() {
  return {
      {"rename",
       "buffers and operations have other names",
       Expect::Legal,
       {},
       renameAll},
      {"reorder",
       "operations that may run together are listed the other way",
       Expect::Legal,
       {},
       reorder},
      {"extra-wait",
       "an operation waits for one more",
       Expect::Legal,
       {},
       extraWait},
      {"wait-sooner",
       "the operation before makes the wait",
       Expect::Legal,
       {},
       waitSooner},
      {"extra-event",
       "an event that nobody waits for",
       Expect::Legal,
       {},
       extraEvent},
      {"renumber-events",
       "events are numbered backward",
       Expect::Legal,
       {},
       renumberEvents},
      {"serialize",
       "everything runs on one stream",
       Expect::Legal,
       {},
       serialize},
      {"renumber-streams",
       "streams have other numbers",
       Expect::Legal,
       {},
       renumberStreams},
      {"renumber-buffers",
       "buffers are listed backward",
       Expect::Legal,
       {},
       renumberBuffers},
      {"larger-arena",
       "the step's buffers lie 4096 bytes further",
       Expect::Legal,
       {},
       largerArena},
      {"mirror", "the arena is laid out backward", Expect::Legal, {}, mirror},
      {"spread",
       "no transient buffers share addresses",
       Expect::Legal,
       {},
       spread},
      {"unused-entries",
       "tables have entries that nothing names",
       Expect::Legal,
       {},
       unusedEntries},
      {"gather-again",
       "a weight is gathered twice",
       Expect::Legal,
       {},
       gatherAgain},
      {"useless-fill",
       "bytes that nothing reads are cleared",
       Expect::Legal,
       {},
       uselessFill},
      {"other-predictions",
       "durations, budget and provenance differ",
       Expect::Legal,
       {},
       otherPredictions},
      {"spell-defaults",
       "dense operands state their pitch",
       Expect::Legal,
       {},
       spellDefaults},
  };
}
