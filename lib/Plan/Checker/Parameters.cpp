//===- Parameters.cpp - Rule `structure`: parameters and their buffers ----===//

#include "Structure.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

/// Each buffer is the shard of one parameter, and holds it exactly.
class ParameterTable {
public:
  explicit ParameterTable(Context &context)
      : c(context), owner(static_cast<size_t>(c.plan.buffers_size()), -1) {}

  void check() {
    for (int i = 0; i < c.plan.parameters_size() && !c.full(); ++i)
      checkParameter(static_cast<uint32_t>(i));
  }

private:
  void checkParameter(uint32_t index);
  void checkLayout(uint32_t index, const pb::Layout &layout);
  void checkTensors(uint32_t index);
  void take(uint32_t index, uint64_t buffer, const char *what,
            pb::Buffer::Kind kind, std::optional<uint64_t> elements,
            pb::DType type);

  Context &c;
  std::vector<int> owner;
};

void ParameterTable::checkParameter(uint32_t index) {
  const pb::Parameter &p = c.parameter(index);
  std::string where = c.parameterText(index);
  if (!in(p.name(), c.plan.strings_size()))
    c.fail("structure",
           "parameter " + std::to_string(index) + " has no valid name");
  if (!pb::Parameter::Init_IsValid(p.init()))
    c.fail("structure", where + " has an unknown initialization");
  for (uint32_t name : p.tied_names())
    if (!in(name, c.plan.strings_size()))
      c.fail("structure", where + " has a tied name that is no string");
  if (!in(p.layout(), c.plan.layouts_size()))
    return c.fail("structure", where + " has layout " +
                                   std::to_string(p.layout()) +
                                   ", which does not exist");
  const pb::Layout &layout = c.plan.layouts(static_cast<int>(p.layout()));
  checkLayout(index, layout);
  checkTensors(index);
  std::optional<uint64_t> elements = 1;
  for (uint64_t size : shardShape(c.plan.mesh(), layout))
    if (elements)
      elements = checkedMul(*elements, size);

  const pb::Numerics &numerics = c.plan.numerics();
  bool separate = p.master_buffer_plus1() != 0;
  bool split = p.remainder_buffer_plus1() != 0;
  if (split && (separate || numerics.compute() != pb::BF16 ||
                numerics.master() != pb::F32))
    c.fail("structure",
           where + " has a remainder beside its compute buffer, which makes " +
               "a f32 master of a bf16 weight; expected no master buffer, " +
               "compute type bf16 and master type f32, found " +
               (separate ? "a master buffer, " : "") +
               dtypeName(numerics.compute()) + " and " +
               dtypeName(numerics.master()));
  if (!separate && !split && !p.frozen() &&
      numerics.compute() != numerics.master())
    c.fail("structure", where + " has no master buffer, but its compute type " +
                            dtypeName(numerics.compute()) +
                            " is not the master's " +
                            dtypeName(numerics.master()));
  take(index, p.compute_buffer(), "compute", pb::Buffer::PERSISTENT, elements,
       numerics.compute());
  if (separate)
    take(index, p.master_buffer_plus1() - 1, "master", pb::Buffer::PERSISTENT,
         elements, numerics.master());
  if (split)
    take(index, p.remainder_buffer_plus1() - 1, "remainder",
         pb::Buffer::PERSISTENT, elements, pb::I16);
  for (uint32_t state : p.state_buffers())
    take(index, state, "state", pb::Buffer::PERSISTENT, elements,
         numerics.master());
  if (p.gradient_buffer_plus1())
    take(index, p.gradient_buffer_plus1() - 1, "gradient",
         pb::Buffer::TRANSIENT, elements, numerics.gradient());
  else if (!p.frozen())
    c.fail("structure", where + " is trained but names no gradient buffer");
  if (p.uses() == 0)
    c.fail("structure", where + " has no use");
}

void ParameterTable::checkLayout(uint32_t index, const pb::Layout &layout) {
  const pb::Parameter &p = c.parameter(index);
  std::string where = c.parameterText(index);
  if (layout.dims_size() != p.shape_size() || p.shape_size() == 0)
    return c.fail("structure", where + " has " +
                                   std::to_string(p.shape_size()) +
                                   " dimensions and a layout of " +
                                   std::to_string(layout.dims_size()));
  if (layout.partial() != pb::Layout::NONE)
    c.fail("structure", where + " has a partial layout");
  for (int i = 0; i < p.shape_size(); ++i) {
    const pb::LayoutDim &dim = layout.dims(i);
    if (dim.logical() != p.shape(i))
      c.fail("structure", where + " has " + std::to_string(p.shape(i)) +
                              " elements in dimension " + std::to_string(i) +
                              ", its layout " + std::to_string(dim.logical()));
    AxisMask storage = c.maskOf(dim.storage_axes());
    if (c.maskOf(dim.compute_axes()) != 0)
      c.fail("unsupported", where + " is cut by a compute axis");
    if (i > 0 && storage != 0)
      c.fail("unsupported",
             where + " is stored in pieces of a dimension that is not its "
                     "first");
    if (storage & (storage - 1))
      c.fail("unsupported", where + " is stored in pieces over several axes");
  }
}

/// Only a matrix is transposed; interleaved rows are whole groups of parts.
bool isLayoutOf(const pb::CheckpointTensor &tensor,
                const pb::Parameter &parameter) {
  uint64_t groups = tensor.interleaved_groups();
  uint64_t parts = tensor.interleaved_parts();
  if (tensor.transposed())
    return parameter.shape_size() == 2 && groups == 0 && parts == 0;
  if (groups == 0 || parts == 0)
    return groups == parts;
  return tensor.rows() % groups == 0 && tensor.rows() / groups % parts == 0;
}

void ParameterTable::checkTensors(uint32_t index) {
  const pb::Parameter &p = c.parameter(index);
  std::optional<uint64_t> rows = 0;
  for (const pb::CheckpointTensor &tensor : p.tensors()) {
    if (!in(tensor.name(), c.plan.strings_size()))
      c.fail("structure", c.parameterText(index) +
                              " has a checkpoint tensor without a valid name");
    if (rows)
      rows = checkedAdd(*rows, tensor.rows());
    if (!isLayoutOf(tensor, p))
      c.fail("structure", c.parameterText(index) +
                              " has a checkpoint tensor whose layout does not "
                              "fit its " +
                              std::to_string(tensor.rows()) + " rows");
  }
  if (!p.tensors().empty() && p.shape_size() > 0 && rows != p.shape(0))
    c.fail("structure", c.parameterText(index) +
                            " has checkpoint tensors whose rows do not add up "
                            "to its " +
                            std::to_string(p.shape(0)));
}

void ParameterTable::take(uint32_t index, uint64_t buffer, const char *what,
                          pb::Buffer::Kind kind,
                          std::optional<uint64_t> elements, pb::DType type) {
  std::string where = c.parameterText(index) + ": " + what + " buffer";
  if (!in(buffer, c.plan.buffers_size()))
    return c.fail("structure",
                  where + " " + std::to_string(buffer) + " does not exist");
  uint32_t b = static_cast<uint32_t>(buffer);
  if (owner[b] >= 0)
    return c.fail("structure",
                  where + " is also a buffer of " +
                      c.parameterText(static_cast<uint32_t>(owner[b])));
  owner[b] = static_cast<int>(index);
  if (kind == pb::Buffer::PERSISTENT ? c.buffer(b).kind() != kind
                                     : c.buffer(b).kind() == pb::Buffer::INPUT)
    c.fail("structure", where + " " + c.bufferText(b) + " is of kind " +
                            pb::Buffer::Kind_Name(c.buffer(b).kind()));
  std::optional<uint64_t> bytes;
  if (elements)
    bytes = checkedMul(*elements, dtypeSize(type));
  if (bytes != c.buffer(b).size())
    c.fail("structure", where + " " + c.bufferText(b) + " has " +
                            std::to_string(c.buffer(b).size()) +
                            " bytes, expected " +
                            (bytes ? std::to_string(*bytes) : "no such size") +
                            " for a shard in " + dtypeName(type));
}

} // namespace

void check::checkParameters(Context &c) { ParameterTable(c).check(); }
