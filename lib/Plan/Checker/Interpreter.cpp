//===- Interpreter.cpp - Runs a plan on abstract values -------------------===//

#include "Interpreter.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

static uint64_t product(const std::vector<uint64_t> &sizes) {
  uint64_t result = 1;
  for (uint64_t size : sizes)
    result *= size;
  return result;
}

Interpreter::Interpreter(Context &context)
    : c(context), buffers(static_cast<size_t>(context.plan.buffers_size())),
      parameters(static_cast<size_t>(context.plan.parameters_size())),
      held(static_cast<size_t>(context.plan.memory_size())),
      tokenAxes(context.tokenAxes()) {
  // Before a program, what lives across steps is defined, and so are its own
  // inputs.
  std::vector<bool> isInput(buffers.size());
  for (const pb::Io &io : c.program().inputs())
    isInput[io.buffer()] = true;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const pb::Buffer &buffer = c.buffer(i);
    Tag tag;
    if (buffer.kind() == pb::Buffer::PERSISTENT || isInput[i]) {
      take(i);
      tag.content = Content::Data;
      tag.id = mixHash(1, i);
    }
    buffers[i].contents.reset(buffer.size(), tag);
  }
  isBatchInput.resize(buffers.size());
  for (const pb::Io &io : c.program().inputs())
    isBatchInput[io.buffer()] = check::isBatchInput(c.string(io.name()));
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const pb::Parameter &p = c.parameter(i);
    const pb::Layout &layout = c.plan.layouts(static_cast<int>(p.layout()));
    ParameterState &state = parameters[i];
    state.storage = c.storageAxes(i);
    state.logical = product(useShape(c.plan.mesh(), layout));
    state.shard = product(shardShape(c.plan.mesh(), layout));
    state.gathered = state.shard;
    for (const pb::LayoutDim &dim : layout.dims())
      for (uint32_t axis : dim.storage_axes())
        state.gathered *= c.plan.mesh().axes(static_cast<int>(axis)).degree();
    Tag tag;
    tag.content = Content::Weight;
    tag.parameter = i;
    tag.cut = state.storage;
    auto define = [&](uint32_t buffer, pb::DType type) {
      tag.dtype = type;
      buffers[buffer].contents.reset(c.buffer(buffer).size(), tag);
    };
    define(p.compute_buffer(), c.plan.numerics().compute());
    if (p.master_buffer_plus1())
      define(p.master_buffer_plus1() - 1, c.plan.numerics().master());
  }
}

uint64_t Interpreter::logicalBytes(uint32_t parameter, pb::DType type) const {
  return parameters[parameter].logical * dtypeSize(type);
}
uint64_t Interpreter::shardBytes(uint32_t parameter, pb::DType type) const {
  return parameters[parameter].shard * dtypeSize(type);
}
uint64_t Interpreter::gatheredBytes(uint32_t parameter, pb::DType type) const {
  return parameters[parameter].gathered * dtypeSize(type);
}

void Interpreter::run() {
  for (const RegionInfo &next : c.regions) {
    if (next.region->kind() == pb::Region::UPDATE &&
        (!region || region->region->kind() != pb::Region::UPDATE))
      checkGradientBuffers();
    region = &next;
    runRegion(next);
    firstOperation += next.operations.size();
    if (c.full())
      return;
  }
  checkEnd();
}

void Interpreter::runRegion(const RegionInfo &body) {
  uint64_t repeat = body.region->repeat();
  bool isBody = body.region->kind() == pb::Region::BODY;
  if (repeat == 1) {
    runIteration(body, Variant::Only);
    if (isBody)
      endBody(/*only=*/true);
    return;
  }
  runIteration(body, Variant::First);
  endIteration(/*first=*/true);
  // A chain of values that each iteration hands on settles after as many
  // iterations as it is long; no plan has long ones.
  constexpr uint64_t enough = 8;
  uint64_t before = fingerprint();
  bool settled = false;
  for (uint64_t i = 0; i < std::min(repeat - 2, enough) && !settled; ++i) {
    runIteration(body, Variant::Middle);
    endIteration(/*first=*/false);
    uint64_t after = fingerprint();
    settled = after == before;
    before = after;
  }
  if (!settled && repeat - 2 > enough)
    c.fail("undefined-read",
           c.programText() + "region " + std::to_string(body.index) +
               ": what its buffers hold still changes in kind after " +
               std::to_string(enough) + " iterations");
  runIteration(body, Variant::Last);
  endBody(/*only=*/false);
}

void Interpreter::runIteration(const RegionInfo &body, Variant which) {
  variant = which;
  for (operation = 0; operation < body.operations.size() && !c.full();
       ++operation)
    if (runsIn(body.operations[operation].operation->when(), variant))
      execute(operation);
}

void Interpreter::endIteration(bool first) {
  if (first)
    cotangents.check(c);
  for (BufferState &state : buffers)
    state.contents.transform(
        [&](Tag &tag) { tag.parts = parts.nextIteration(tag.parts, first); });
}

void Interpreter::endBody(bool only) {
  if (only)
    cotangents.check(c);
  for (BufferState &state : buffers)
    state.contents.transform(
        [&](Tag &tag) { tag.parts = parts.afterBody(tag.parts, only); });
}

uint64_t Interpreter::fingerprint() const {
  uint64_t hash = 0;
  for (const BufferState &state : buffers)
    hash = mixHash(mixHash(hash, state.held),
                   state.held ? state.contents.fingerprint() : 0);
  return hash;
}

void Interpreter::execute(size_t index) {
  const OperationInfo &info = region->operations[index];
  for (const OperationInfo::Acquired &acquired : info.acquired)
    if (acquired.everyIteration || firstIteration())
      take(acquired.buffer);
  switch (info.operation->body_case()) {
  case pb::Operation::kKernel:
    return kernel(info);
  case pb::Operation::kCollective:
    return collective(info);
  case pb::Operation::kCopy:
    return copy(info);
  case pb::Operation::kFill: {
    Tag tag;
    uint32_t byte = info.operation->fill().byte_value();
    tag.content = byte == 0 ? Content::Zero : Content::Data;
    tag.id = byte;
    return write(info.touches[0], tag);
  }
  case pb::Operation::BODY_NOT_SET:
    return;
  }
}

/// The buffer's bytes become its own, undefined; buffers that overlap it lose
/// theirs.
void Interpreter::take(uint32_t index) {
  const pb::Buffer &buffer = c.buffer(index);
  std::map<uint64_t, uint32_t> &holders = held[buffer.memory()];
  uint64_t end = buffer.offset() + buffer.size();
  auto it = holders.lower_bound(buffer.offset());
  // Holders do not overlap each other, so one at most reaches in from before.
  if (it != holders.begin()) {
    const pb::Buffer &before = c.buffer(std::prev(it)->second);
    if (before.offset() + before.size() > buffer.offset())
      --it;
  }
  while (it != holders.end() && it->first < end) {
    buffers[it->second].held = false;
    buffers[it->second].lostTo = index;
    it = holders.erase(it);
  }
  holders.emplace(buffer.offset(), index);
  buffers[index].held = true;
  buffers[index].contents.reset(buffer.size(), Tag());
}

Read Interpreter::read(const Touch &touch) {
  uint32_t index = touch.buffer();
  BufferState &state = buffers[index];
  auto reads = [&] {
    return "reads " +
           (touch.spec ? "'" + std::string(touch.spec->name) + "' in "
                       : std::string()) +
           c.bufferText(index);
  };
  if (!state.held) {
    fail("undefined-read",
         state.lostTo < 0
             ? reads() + ", which nothing has written"
             : reads() + ", whose bytes " +
                   c.bufferText(static_cast<uint32_t>(state.lostTo)) +
                   " has taken");
    take(index);
    Tag tag;
    tag.content = Content::Data;
    state.contents.reset(c.buffer(index).size(), tag);
  }
  if (!c.spend(state.contents.pieceCount()))
    return Read();
  if (isBatchInput[index])
    checkMicrobatch(touch);
  Read result = state.contents.read(View::of(touch));
  if (!result.defined) {
    fail("undefined-read",
         reads() + " bytes [" + std::to_string(touch.begin) + ", " +
             std::to_string(touch.end) + "), of which byte " +
             std::to_string(result.undefinedAt) + " and maybe more " +
             "hold nothing that this step wrote");
    // Say it once, not for every operation that depends on it.
    if (result.content < Content::Data)
      result.content = Content::Data;
  }
  if (result.mixed)
    fail("role", reads() + " bytes [" + std::to_string(touch.begin) + ", " +
                     std::to_string(touch.end) + "), which hold " +
                     describe(result) +
                     " and something else, expected one value");
  if (result.partialDiffers)
    fail("partial", reads() + ", of which parts are partial over different "
                              "axes");
  return result;
}

void Interpreter::write(const Touch &touch, const Tag &tag) {
  BufferState &state = buffers[touch.buffer()];
  if (!state.held)
    take(touch.buffer());
  if (c.spend(state.contents.pieceCount()))
    state.contents.write(View::of(touch), tag);
}

void Interpreter::writeValue(const Touch &touch, const Tag &tag,
                             uint64_t valid) {
  BufferState &state = buffers[touch.buffer()];
  if (!state.held)
    take(touch.buffer());
  uint64_t middle = touch.begin + std::min(valid, touch.end - touch.begin);
  state.contents.write(touch.begin, middle, tag, 0);
  Tag zero;
  zero.content = Content::Zero;
  state.contents.write(middle, touch.end, zero, 0);
}

void Interpreter::fail(const char *rule, const std::string &message) {
  c.failAt(rule, region->place(operation), " " + message);
}

std::string Interpreter::describe(const Read &read) const {
  switch (read.content) {
  case Content::Undefined:
  case Content::OwnPiece:
    return "nothing";
  case Content::Zero:
    return "zeros";
  case Content::Data:
    return "data";
  case Content::Weight:
    return std::string(read.tag.cut ? "the shard" : "the whole") + " of " +
           c.parameterText(read.tag.parameter) +
           (read.tag.updated ? " after its update" : " before its update");
  case Content::Gradient:
    return "the gradient of " + c.parameterText(read.tag.parameter) +
           ", partial over " + c.axesText(read.tag.partial) + ", cut over " +
           c.axesText(read.tag.cut);
  }
  return "";
}

void check::checkValues(Context &context) { Interpreter(context).run(); }
