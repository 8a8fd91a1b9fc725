//===- KernelValues.cpp - What kernels make of abstract values ------------===//
//
// Everything here follows from the registry: roles, contributions, and over
// what a kernel sums.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

void Interpreter::kernel(const OperationInfo &info) {
  if (!info.parts.empty()) {
    for (const OperationInfo &part : info.parts)
      kernel(part);
    return;
  }
  if (info.kernel->contribution == Contribution::Merges)
    return merge(info);
  bool updates = std::any_of(
      info.touches.begin(), info.touches.end(),
      [](const Touch &touch) { return touch.spec->role == Role::Master; });
  return updates ? update(info) : compute(info);
}

/// Identity of a computation before its operands: the kernel and its
/// attributes.
static uint64_t kernelIdentity(const OperationInfo &info) {
  uint64_t id = std::hash<std::string_view>{}(info.kernel->name);
  for (const pb::Attribute &attribute : info.operation->kernel().attributes())
    id = mixHash(id, std::hash<std::string>{}(attribute.SerializeAsString()));
  return id;
}

void Interpreter::compute(const OperationInfo &info) {
  const KernelSpec &spec = *info.kernel;
  const pb::Kernel &kernel = info.operation->kernel();
  uint32_t parameter = info.parameterPlus1 - 1;
  bool forward = spec.contribution == Contribution::None;
  uint64_t id = kernelIdentity(info);
  uint64_t use = 0;
  bool readsWeight = false;
  std::optional<Read> squared, cotangent;
  const Touch *cotangentTouch = nullptr;
  std::vector<std::pair<const Touch *, Read>> joined;
  for (const Touch &touch : info.touches) {
    // A use that no activation tells from another is the parameter's.
    if (touch.spec->identifiesUse && (touch.spec->role == Role::Weight ||
                                      touch.spec->role == Role::Gradient))
      use = mixHash(3, info.parameterPlus1);
    if (!touch.reads || touch.writes)
      continue;
    Read value = read(touch);
    id = mixHash(id, value.id);
    if (touch.spec->identifiesUse && touch.spec->role != Role::Weight)
      use = value.id;
    if (touch.spec->role == Role::Weight) {
      readsWeight = true;
      checkWeight(parameter, touch, value);
      continue;
    }
    std::string operand = "'" + std::string(touch.spec->name) + "' in " +
                          c.bufferText(touch.buffer());
    // A partial passes only through what is linear in it.
    if (value.partial != 0)
      fail("partial", "reads " + operand + ", which is still partial over " +
                          c.axesText(value.partial) +
                          ": an all-reduce is missing before it");
    if (value.content == Content::Gradient && spec.sums == SumsOver::Elements) {
      expectWholeGradient(value.tag.parameter, value,
                          "reads " + operand + ", which",
                          /*byOperation=*/true);
      squared = value;
    } else if (value.content >= Content::Weight) {
      fail("role", "reads " + operand + ", which holds " + describe(value) +
                       ", expected an activation");
    }
    if (touch.spec->role == Role::SquaredNorm)
      checkSquaredNorm(value, operand);
    else
      checkWholeSum(value, operand);
    if (touch.spec->cotangent) {
      cotangent = value;
      cotangentTouch = &touch;
    }
    if (spec.concatenates)
      joined.emplace_back(&touch, value);
    if (touch.spec->slopeOne)
      cotangents.add(parameter, touch, value);
    else
      cotangents.use(value);
  }
  // Uses are those of one microbatch; every iteration runs the same.
  if (readsWeight && use && forward) {
    if (region->region->kind() != pb::Region::BODY)
      fail("exactly-once", "uses a weight outside the body, where no gradient "
                           "accounts for it");
    else if (firstIteration())
      parameters[parameter].forwardUses.push_back(use);
  }
  if (cotangent && firstIteration()) {
    if (forward)
      cotangents.pass(parameter, *cotangent, region->place(operation));
    else
      cotangents.contribute({parameter, use}, *cotangentTouch, *cotangent);
  }

  uint64_t index = 0;
  for (const Touch &touch : info.touches) {
    ++index;
    if (!touch.writes)
      continue;
    if (touch.spec->role == Role::Gradient) {
      contributedUses[operationNumber()] = use;
      produceGradient(parameter, touch);
      continue;
    }
    Tag tag;
    if (touch.spec->role != Role::Scratch)
      tag = resultTag(spec, mixHash(id, index), squared ? &*squared : nullptr);
    tag.scale = touch.spec->role == Role::Scale;
    makesScale |= tag.scale;
    if (!spec.fillAttribute.empty() &&
        floatAttribute(c.plan, kernel, spec.fillAttribute) == 0)
      tag.content = Content::Zero;
    if (readsWeight && use && forward)
      cotangents.make(tag.id, {parameter, use});
    uint64_t column = 0;
    for (const auto &[part, value] : joined) {
      cotangents.join(tag.id, column, value);
      column += rowElements(*part->operand);
    }
    if (touch.operand->accumulate())
      writeReduced(touch, tag, 0);
    else
      write(touch, tag);
  }
}

/// What a kernel writes: data, and of sums what they are partial over and which
/// terms they have.
Tag Interpreter::resultTag(const KernelSpec &spec, uint64_t id,
                           const Read *squared) {
  Tag tag;
  tag.content = Content::Data;
  tag.id = id;
  if (spec.contribution != Contribution::None)
    return tag;
  if (spec.sums == SumsOver::Tokens) {
    bool body = region->region->kind() == pb::Region::BODY;
    tag.partial = tokenAxes;
    tag.parts = parts.intern(
        {{operationNumber(), body ? Coverage::Current : Coverage::Step}});
    contributedUses[operationNumber()] = id;
  } else if (spec.sums == SumsOver::Elements && squared) {
    tag.partial = squared->tag.cut;
    tag.parts = squareOf(squared->tag.parameter);
  }
  return tag;
}

void Interpreter::checkWeight(uint32_t p, const Touch &touch,
                              const Read &value) {
  const pb::Parameter &parameter = c.parameter(p);
  std::string expected =
      "reads '" + std::string(touch.spec->name) + "' in " +
      c.bufferText(touch.buffer()) + " bytes [" + std::to_string(touch.begin) +
      ", " + std::to_string(touch.end) + ") as " + c.parameterText(p);
  if (!value.defined)
    return; // already said
  if (value.content != Content::Weight || value.tag.parameter != p)
    return fail("weight-version", expected + ", found " + describe(value));
  if (value.tag.updated != parameters[p].updated)
    return fail("weight-version",
                expected + ", found " + describe(value) +
                    ", which is not the version of this place in the step");
  if (value.tag.cut != 0)
    return fail("weight-version", expected + ", found " + describe(value) +
                                      ": a gather is missing before it");
  pb::DType type = touch.operand->dtype();
  bool whole = value.tag.dtype == type && value.base == 0 &&
               value.valid == logicalBytes(p, type) &&
               touch.operand->dims_size() == parameter.shape_size() &&
               std::equal(parameter.shape().begin(), parameter.shape().end(),
                          touch.operand->dims().begin());
  if (!whole)
    fail("weight-version", expected + " as " + plan::describe(*touch.operand) +
                               ", found bytes [" + std::to_string(value.base) +
                               ", " + std::to_string(value.base + value.valid) +
                               ") of it in " + dtypeName(value.tag.dtype) +
                               ", expected exactly all of it");
}

void Interpreter::produceGradient(uint32_t p, const Touch &touch) {
  const pb::Parameter &parameter = c.parameter(p);
  if (region->region->kind() != pb::Region::BODY)
    fail("exactly-once", "contributes to a gradient outside the body");
  if (touch.operand->dims_size() != parameter.shape_size() ||
      !std::equal(parameter.shape().begin(), parameter.shape().end(),
                  touch.operand->dims().begin()))
    fail("exactly-once", "writes '" + std::string(touch.spec->name) + "' as " +
                             plan::describe(*touch.operand) +
                             ", expected the shape of " + c.parameterText(p));
  Tag tag;
  tag.content = Content::Gradient;
  tag.dtype = touch.operand->dtype();
  tag.parameter = p;
  tag.partial = tokenAxes;
  tag.parts = parts.intern({{operationNumber(), Coverage::Current}});
  writeReduced(touch, tag, touch.end - touch.begin);
}

/// Writes a gradient, or adds it to what the destination holds.
void Interpreter::writeReduced(const Touch &touch, Tag tag, uint64_t valid) {
  if (touch.operand->accumulate() && !firstIteration()) {
    Read before = read(touch);
    std::string sum = "adds to " + c.bufferText(touch.buffer());
    if (tag.content != Content::Gradient) {
      if (before.content >= Content::Weight || before.partial != tag.partial)
        fail("partial", sum + " a value partial over " +
                            c.axesText(tag.partial) + ", found " +
                            describe(before) + " partial over " +
                            c.axesText(before.partial));
      tag.parts = uniteSums(before.parts, tag.parts);
    } else if (before.content != Content::Gradient ||
               before.tag.parameter != tag.parameter ||
               before.tag.cut != tag.cut || before.tag.partial != tag.partial ||
               before.base != 0 || before.valid != valid) {
      fail("exactly-once", sum + " a gradient of " +
                               c.parameterText(tag.parameter) +
                               " partial over " + c.axesText(tag.partial) +
                               ", found " + describe(before));
    } else if (std::optional<uint32_t> sumParts =
                   parts.unite(before.tag.parts, tag.parts)) {
      tag.parts = *sumParts;
    } else {
      fail("exactly-once", sum + " a contribution to the gradient of " +
                               c.parameterText(tag.parameter) +
                               " that it already has");
    }
  }
  if (touch.operand->accumulate() && tag.content == Content::Data)
    tag.id = mixHash(2, operationNumber());
  if (tag.content == Content::Gradient)
    writeValue(touch, tag, valid);
  else
    write(touch, tag);
}

AxisMask Interpreter::keepFirstAxes(const OperationInfo &info) const {
  std::string_view attribute = info.kernel->keepFirstAttribute;
  if (attribute.empty())
    return 0;
  int64_t mask = intAttribute(c.plan, info.operation->kernel(), attribute);
  AxisMask axes = 0;
  for (int i = 0; i < c.plan.mesh().axes_size(); ++i)
    if (mask >> i & 1 && c.plan.mesh().axes(i).degree() > 1)
      axes |= AxisMask(1) << i;
  return axes;
}

/// Kernels that are linear in their inputs: the result is the sum of what these
/// are.
void Interpreter::merge(const OperationInfo &info) {
  std::vector<Read> reads;
  bool gradients = false;
  uint64_t id = kernelIdentity(info);
  for (const Touch &touch : info.touches) {
    if (touch.writes)
      continue;
    reads.push_back(read(touch));
    id = mixHash(id, reads.back().id);
    gradients |= reads.back().content == Content::Gradient;
    if (reads.back().content == Content::Weight)
      fail("role", "reads " + describe(reads.back()) +
                       ", expected an activation or a gradient");
  }
  if (gradients)
    return mergeGradients(info, reads);

  Tag tag;
  tag.content = Content::Data;
  tag.id = mixHash(id, 1);
  // Zeros are zero whatever they are partial over.
  const Read *first = nullptr;
  for (const Read &value : reads) {
    if (value.content == Content::Zero)
      continue;
    if (first && first->partial != value.partial)
      fail("partial", "adds a value that is partial over " +
                          c.axesText(value.partial) + " to one over " +
                          c.axesText(first->partial));
    if (!first)
      first = &value;
    tag.parts = uniteSums(tag.parts, value.parts);
    cotangents.use(value);
  }
  tag.partial = first ? first->partial : 0;
  AxisMask keep = keepFirstAxes(info);
  if (keep & tag.partial)
    fail("partial", "keeps the first of a value that is already partial over " +
                        c.axesText(keep & tag.partial));
  tag.partial |= keep;
  for (const Touch &touch : info.touches)
    if (touch.writes)
      writeReduced(touch, tag, 0);
}

void Interpreter::mergeGradients(const OperationInfo &info,
                                 const std::vector<Read> &reads) {
  const Read *first = nullptr;
  Tag tag;
  uint64_t elements = 0;
  for (const Read &value : reads) {
    if (value.content == Content::Zero)
      continue;
    if (value.content != Content::Gradient) {
      fail("role", "adds " + describe(value) + " to a gradient");
      continue;
    }
    uint64_t count = value.valid / dtypeSize(value.tag.dtype);
    if (value.base != 0)
      fail("role", "reads a piece of " + describe(value) +
                       " that does not start at its beginning");
    if (!first) {
      first = &value;
      tag = value.tag;
      elements = count;
      continue;
    }
    if (value.tag.parameter != tag.parameter || value.tag.cut != tag.cut ||
        value.tag.partial != tag.partial || count != elements) {
      fail("exactly-once",
           "adds " + describe(value) + " to " + describe(*first));
      continue;
    }
    if (std::optional<uint32_t> sum = parts.unite(tag.parts, value.tag.parts))
      tag.parts = *sum;
    else
      fail("exactly-once", "counts a contribution to the gradient of " +
                               c.parameterText(tag.parameter) + " twice");
  }
  AxisMask keep = keepFirstAxes(info);
  if (keep & tag.partial)
    fail("partial", "keeps the first of a value that is already partial over " +
                        c.axesText(keep & tag.partial));
  tag.partial |= keep;
  for (const Touch &touch : info.touches)
    if (touch.writes) {
      tag.dtype = touch.operand->dtype();
      writeReduced(touch, tag, elements * dtypeSize(tag.dtype));
    }
}
