//===- UpdateValues.cpp - Whole gradients, updates, the end of the step ---===//

#include "Interpreter.h"

#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

void Interpreter::expectWholeGradient(uint32_t p, const Read &value,
                                      const std::string &what,
                                      bool byOperation) {
  const ParameterState &state = parameters[p];
  std::string expected =
      what + " must hold the reduced gradient of " + c.parameterText(p) + ", ";
  if (!value.defined)
    return; // already said
  auto report = [&](const std::string &found) {
    if (byOperation)
      fail("exactly-once", expected + found);
    else
      c.fail("exactly-once", expected + found);
  };
  if (value.content != Content::Gradient || value.tag.parameter != p)
    return report("found " + describe(value));
  if (value.tag.partial != 0)
    return report("found it still partial over " +
                  c.axesText(value.tag.partial) + ": a reduction is missing");
  if (value.tag.cut != state.storage || value.base != 0 ||
      value.valid != shardBytes(p, value.tag.dtype))
    return report("found bytes [" + std::to_string(value.base) + ", " +
                  std::to_string(value.base + value.valid) +
                  ") of it cut over " + c.axesText(value.tag.cut) +
                  ", expected all " +
                  std::to_string(shardBytes(p, value.tag.dtype)) +
                  " of the shard over " + c.axesText(state.storage));
  std::vector<uint64_t> contributed;
  for (const Part &part : parts[value.tag.parts]) {
    if (part.coverage != Coverage::Step)
      return report("found a contribution that lacks microbatches: the body "
                    "runs " +
                    std::to_string(c.plan.model().microbatches()) +
                    " times and does not accumulate each");
    contributed.push_back(contributedUses[part.operation]);
  }
  std::vector<uint64_t> used = state.forwardUses;
  uint64_t uses = c.parameter(p).uses();
  if (contributed.size() != used.size() || used.size() != uses)
    return report(
        "found " + std::to_string(contributed.size()) +
        " contributions a microbatch for " + std::to_string(used.size()) +
        " forward uses, of which the plan declares " + std::to_string(uses));
  std::sort(contributed.begin(), contributed.end());
  std::sort(used.begin(), used.end());
  if (contributed != used)
    report("found a contribution that was computed from another activation "
           "than any forward use read");
}

void Interpreter::checkGradientBuffers() {
  for (uint32_t p = 0; p < parameters.size() && !c.full(); ++p) {
    const pb::Parameter &parameter = c.parameter(p);
    if (parameter.frozen() || !parameter.gradient_buffer_plus1())
      continue;
    uint32_t index = parameter.gradient_buffer_plus1() - 1;
    std::string what = "at the start of the update, " + c.bufferText(index);
    if (!buffers[index].held) {
      c.fail("exactly-once", what + " must hold the reduced gradient of " +
                                 c.parameterText(p) +
                                 ", found its bytes unwritten or taken");
      continue;
    }
    uint64_t size = c.buffer(index).size();
    Read value = buffers[index].contents.read({0, size, size, 0});
    if (!value.defined)
      c.fail("undefined-read", what + " must hold the reduced gradient of " +
                                   c.parameterText(p) +
                                   ", found bytes that nothing wrote");
    expectWholeGradient(p, value, what, /*byOperation=*/false);
    if (value.content == Content::Gradient &&
        value.tag.dtype != c.plan.numerics().gradient())
      c.fail("exactly-once", what + " holds a gradient in " +
                                 dtypeName(value.tag.dtype) + ", expected " +
                                 dtypeName(c.plan.numerics().gradient()));
  }
}

void Interpreter::update(const OperationInfo &info) {
  uint32_t p = info.parameterPlus1 - 1;
  const pb::Parameter &parameter = c.parameter(p);
  ParameterState &state = parameters[p];
  bool separate = parameter.master_buffer_plus1() != 0;
  uint32_t master = separate ? parameter.master_buffer_plus1() - 1
                             : parameter.compute_buffer();
  if (region->region->kind() != pb::Region::UPDATE)
    fail("weight-version",
         "updates " + c.parameterText(p) + " outside the update region");
  if (parameter.frozen())
    fail("exactly-once", "updates " + c.parameterText(p) + ", which is frozen");
  if (state.updated)
    fail("exactly-once",
         "updates " + c.parameterText(p) + ", which was updated before");

  auto expectBuffer = [&](const Touch &touch, uint32_t buffer) {
    if (touch.buffer() != buffer || touch.begin != 0 ||
        touch.end != c.buffer(buffer).size())
      fail("role", "uses bytes [" + std::to_string(touch.begin) + ", " +
                       std::to_string(touch.end) + ") of " +
                       c.bufferText(touch.buffer()) + " as '" +
                       std::string(touch.spec->name) + "' of " +
                       c.parameterText(p) + ", expected all of " +
                       c.bufferText(buffer));
  };
  int states = 0;
  bool publishes = false, joins = false;
  for (const Touch &touch : info.touches) {
    switch (touch.spec->role) {
    case Role::Master:
      expectBuffer(touch, master);
      read(touch);
      break;
    case Role::Remainder:
      joins = true;
      if (parameter.remainder_buffer_plus1())
        expectBuffer(touch, parameter.remainder_buffer_plus1() - 1);
      read(touch);
      break;
    case Role::State:
      if (states < parameter.state_buffers_size())
        expectBuffer(touch, parameter.state_buffers(states));
      read(touch);
      ++states;
      break;
    case Role::Gradient:
      expectWholeGradient(p, read(touch),
                          "reads '" + std::string(touch.spec->name) + "' in " +
                              c.bufferText(touch.buffer()) + ", which",
                          /*byOperation=*/true);
      break;
    case Role::Compute:
      publishes = true;
      expectBuffer(touch, parameter.compute_buffer());
      break;
    case Role::Hyper: {
      const pb::Buffer &rates = c.buffer(touch.buffer());
      bool isInput =
          rates.kind() == pb::Buffer::INPUT && !isBatchInput[touch.buffer()];
      read(touch);
      if (!isInput || touch.begin != 0 || touch.end != rates.size())
        fail("role", "reads '" + std::string(touch.spec->name) + "' in " +
                         c.bufferText(touch.buffer()) +
                         ", expected all of the input of that name");
      break;
    }
    default: {
      Read value = read(touch);
      // Where the step makes a factor, that; else one value for all.
      if (touch.spec->role == Role::Scale && !commonScale)
        commonScale = value.id;
      if (touch.spec->role == Role::Scale &&
          (value.id != *commonScale || (makesScale && !value.scale)))
        fail("role", "reads '" + std::string(touch.spec->name) + "' in " +
                         c.bufferText(touch.buffer()) + ", found " +
                         describe(value) +
                         " that is not the factor of every gradient");
      if (value.partial != 0 || value.content >= Content::Weight)
        fail("partial", "reads '" + std::string(touch.spec->name) + "' in " +
                            c.bufferText(touch.buffer()) + ", found " +
                            describe(value) + " partial over " +
                            c.axesText(value.partial));
      break;
    }
    }
  }
  if (states != parameter.state_buffers_size())
    fail("role", "has " + std::to_string(states) + " states of " +
                     c.parameterText(p) + ", expected " +
                     std::to_string(parameter.state_buffers_size()));
  if (joins != (parameter.remainder_buffer_plus1() != 0))
    fail("role", joins ? "updates a remainder of " + c.parameterText(p) +
                             ", which has none"
                       : "updates " + c.parameterText(p) +
                             " without its remainder, which is the rest of "
                             "its master");
  if (publishes != separate)
    fail("role",
         separate ? "does not publish the compute copy of " + c.parameterText(p)
                  : "publishes a compute copy of " + c.parameterText(p) +
                        ", whose compute buffer is its master");

  state.updated = true;
  for (const Touch &touch : info.touches) {
    if (!touch.writes)
      continue;
    Tag tag;
    tag.content = Content::Data;
    tag.id = mixHash(6, operationNumber());
    if (touch.spec->role == Role::Master || touch.spec->role == Role::Compute) {
      tag.content = Content::Weight;
      tag.updated = true;
      tag.dtype = touch.operand->dtype();
      tag.parameter = p;
      tag.cut = state.storage;
      tag.id = 0;
    }
    write(touch, tag);
  }
}

/// After a step every parameter is ready for the next one, after another
/// program as it was; outputs hold whole values.
void Interpreter::checkEnd() {
  const std::string atEnd = c.trains() ? "at the end of the step, "
                                       : c.programText() + "at its end, ";
  auto expectVersion = [&](uint32_t p, uint32_t index) {
    const Contents &contents = buffers[index].contents;
    uint64_t size = c.buffer(index).size();
    Read value = contents.read({0, size, size, 0});
    bool updated = c.trains() && !c.parameter(p).frozen();
    if (!buffers[index].held || !value.defined || value.mixed ||
        value.content != Content::Weight || value.tag.parameter != p ||
        value.tag.updated != updated || value.base != 0 || value.valid != size)
      c.fail("weight-version",
             atEnd + c.bufferText(index) + " must hold the shard of " +
                 c.parameterText(p) +
                 (updated ? " after its update" : " as it was") + ", found " +
                 (buffers[index].held ? describe(value)
                                      : std::string("its bytes taken")));
  };
  for (uint32_t p = 0; p < parameters.size() && !c.full(); ++p) {
    const pb::Parameter &parameter = c.parameter(p);
    if (c.trains() && !parameter.frozen() && !parameters[p].updated)
      c.fail("exactly-once", "the step does not update " + c.parameterText(p));
    expectVersion(p, parameter.compute_buffer());
    if (parameter.master_buffer_plus1())
      expectVersion(p, parameter.master_buffer_plus1() - 1);
  }
  std::vector<bool> isOutput(buffers.size());
  for (const pb::Io &io : c.program().outputs())
    isOutput[io.buffer()] = true;
  for (uint32_t i = 0; i < buffers.size() && !c.full(); ++i) {
    if (c.buffer(i).kind() != pb::Buffer::PERSISTENT && !isOutput[i])
      continue;
    uint64_t size = c.buffer(i).size();
    Read value = buffers[i].contents.read({0, size, size, 0});
    std::string what = atEnd + c.bufferText(i);
    if (!buffers[i].held || !value.defined)
      c.fail("undefined-read", what + " must hold a value, found bytes that "
                                      "nothing wrote or that were taken");
    else if (value.partial != 0)
      c.fail("partial",
             what + " is still partial over " + c.axesText(value.partial));
    else if (isOutput[i])
      checkSumOutput(i, value);
  }
}
