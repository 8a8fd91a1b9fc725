//===- Structure.cpp - Tables of the plan, and rule `structure` -----------===//

#include "Structure.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Plan/PlanFile.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

bool in(uint64_t index, int size) {
  return index < static_cast<uint64_t>(size);
}

void checkMesh(Context &c) {
  const pb::Mesh &mesh = c.plan.mesh();
  if (mesh.axes_size() > kMaxAxes)
    return c.fail("structure", "mesh has " + std::to_string(mesh.axes_size()) +
                                   " axes, at most " +
                                   std::to_string(kMaxAxes) + " are allowed");
  if (Status status = verifyMesh(mesh); !status.isOk())
    return c.fail("structure", status.message());
  for (const pb::MeshAxis &axis : mesh.axes())
    if (axis.degree() > 1 && !isDataAxis(axis))
      c.fail("unsupported", "mesh axis '" + axis.name() + "' of degree " +
                                std::to_string(axis.degree()) +
                                ": this version takes degrees above 1 of dp "
                                "and gtp only");
  if (c.plan.expert_mesh().axes_size())
    c.fail("unsupported", "an expert mesh is not supported yet");
}

void checkNumerics(Context &c) {
  const pb::Numerics &n = c.plan.numerics();
  for (auto [name, type] :
       {std::pair("compute", n.compute()), std::pair("gradient", n.gradient()),
        std::pair("wire", n.wire()), std::pair("master", n.master())})
    if (!isFloat(type))
      c.fail("structure", std::string("numerics: ") + name + " type is " +
                              dtypeName(type) + ", expected a float type");
}

/// Sequences and microbatches multiply up, without overflow.
void checkModel(Context &c) {
  const pb::Model &model = c.plan.model();
  uint64_t dataRanks = dataRankCount(c.plan.mesh());
  std::optional<uint64_t> sequences =
      checkedMul(dataRanks, model.micro_batch());
  if (sequences)
    sequences = checkedMul(*sequences, model.microbatches());
  if (!sequences || *sequences == 0 || *sequences != model.global_batch())
    c.fail("structure",
           "model: global batch " + std::to_string(model.global_batch()) +
               " must be data ranks " + std::to_string(dataRanks) +
               " x micro batch " + std::to_string(model.micro_batch()) +
               " x microbatches " + std::to_string(model.microbatches()));
  std::optional<uint64_t> tokens =
      checkedMul(model.global_batch(), model.sequence());
  if (!tokens || *tokens == 0 || !checkedMul(*tokens, 4))
    c.fail("structure", "model: global batch " +
                            std::to_string(model.global_batch()) + " x " +
                            std::to_string(model.sequence()) +
                            " tokens must be positive and fit");
  if (model.vocabulary() == 0 || model.vocabulary() > INT32_MAX)
    c.fail("structure", "model: vocabulary " +
                            std::to_string(model.vocabulary()) +
                            " must be in 1 .. 2^31-1");
  if (model.has_document_separator() &&
      model.document_separator() >= model.vocabulary())
    c.fail("structure", "model: document separator " +
                            std::to_string(model.document_separator()) +
                            " must be an id, below the vocabulary of " +
                            std::to_string(model.vocabulary()));
  if (!std::isfinite(model.clip_norm()) || model.clip_norm() < 0 ||
      !std::isfinite(model.initializer_range()) ||
      model.initializer_range() < 0)
    c.fail("structure", "model: clip norm and initializer range must be finite "
                        "and not negative");
}

void checkMemoryRegions(Context &c) {
  if (c.plan.memory_size() == 0)
    c.fail("structure", "plan has no memory region, expected the arena");
  for (int i = 0; i < c.plan.memory_size(); ++i) {
    const pb::MemoryRegion &memory = c.plan.memory(i);
    std::string where = "memory " + std::to_string(i);
    if (!pb::MemoryRegion::Kind_IsValid(memory.kind()))
      c.fail("structure", where + " has an unknown kind");
    uint64_t alignment = memory.alignment();
    if (alignment < 256 || (alignment & (alignment - 1)) ||
        alignment > (uint64_t(1) << 32))
      c.fail("structure", where + " has alignment " +
                              std::to_string(alignment) +
                              ", expected a power of two in 256 .. 2^32");
    else if (memory.size() % alignment || memory.size() > kMaxMemory)
      c.fail("structure", where + " has size " + std::to_string(memory.size()) +
                              ", expected a multiple of its alignment " +
                              std::to_string(alignment) + ", at most " +
                              std::to_string(kMaxMemory));
  }
}

void checkBuffers(Context &c) {
  struct Fixed {
    uint32_t memory;
    uint64_t begin, end;
    uint32_t buffer;
  };
  std::vector<Fixed> fixed;
  if (c.plan.buffers_size() > kMaxBuffers)
    return c.fail("structure",
                  "plan has " + std::to_string(c.plan.buffers_size()) +
                      " buffers, at most " + std::to_string(kMaxBuffers) +
                      " are allowed");
  for (int i = 0; i < c.plan.buffers_size(); ++i) {
    const pb::Buffer &buffer = c.plan.buffers(i);
    uint32_t index = static_cast<uint32_t>(i);
    if (c.full())
      return;
    if (!pb::Buffer::Kind_IsValid(buffer.kind()))
      c.fail("structure", c.bufferText(index) + " has an unknown kind");
    if (!in(buffer.name(), c.plan.strings_size()))
      c.fail("structure", c.bufferText(index) + " has no valid name");
    if (!in(buffer.memory(), c.plan.memory_size())) {
      c.fail("structure", c.bufferText(index) + " is in memory " +
                              std::to_string(buffer.memory()) +
                              ", which does not exist");
      continue;
    }
    uint64_t size = c.plan.memory(static_cast<int>(buffer.memory())).size();
    if (buffer.offset() % 256)
      c.fail("structure", c.bufferText(index) + " is at offset " +
                              std::to_string(buffer.offset()) +
                              ", expected a multiple of 256");
    if (buffer.size() == 0 || buffer.offset() > size ||
        buffer.size() > size - buffer.offset())
      c.fail("structure", c.bufferText(index) + " takes bytes " +
                              std::to_string(buffer.offset()) + " + " +
                              std::to_string(buffer.size()) + " of memory " +
                              std::to_string(buffer.memory()) + " of " +
                              std::to_string(size) + " bytes");
    else if (buffer.kind() != pb::Buffer::TRANSIENT)
      fixed.push_back({buffer.memory(), buffer.offset(),
                       buffer.offset() + buffer.size(), index});
  }
  // What lives across steps or belongs to the runtime shares no byte.
  std::sort(fixed.begin(), fixed.end(), [](const Fixed &a, const Fixed &b) {
    return std::tie(a.memory, a.begin, a.buffer) <
           std::tie(b.memory, b.begin, b.buffer);
  });
  for (size_t i = 1; i < fixed.size(); ++i) {
    // Offsets are sorted, so an overlap shows between neighbours or hides
    // behind one that shows.
    if (fixed[i].memory == fixed[i - 1].memory &&
        fixed[i].begin < fixed[i - 1].end)
      c.fail("structure", c.bufferText(fixed[i].buffer) + " overlaps " +
                              c.bufferText(fixed[i - 1].buffer) +
                              "; persistent, input and output buffers must be "
                              "apart");
  }
}

void checkLayouts(Context &c) {
  for (int i = 0; i < c.plan.layouts_size(); ++i) {
    const pb::Layout &layout = c.plan.layouts(i);
    std::string where = "layout " + std::to_string(i);
    if (!pb::Layout::Partial_IsValid(layout.partial()))
      c.fail("structure", where + " has an unknown kind of partial");
    if (Status status = verifyLayout(c.plan.mesh(), layout); !status.isOk())
      c.fail("structure", where + ": " + status.message());
    for (const pb::LayoutDim &dim : layout.dims())
      for (const pb::Segment &segment : dim.segments())
        if (!in(segment.name(), c.plan.strings_size()))
          c.fail("structure", where + " has a segment without a valid name");
  }
}

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
static bool isLayoutOf(const pb::CheckpointTensor &tensor,
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

void checkCommunicators(Context &c) {
  for (int i = 0; i < c.plan.communicators_size(); ++i) {
    const pb::Communicator &communicator = c.plan.communicators(i);
    std::string where = "communicator " + std::to_string(i);
    if (!pb::Communicator::Purpose_IsValid(communicator.purpose()) ||
        !pb::Communicator::CtaPolicy_IsValid(communicator.cta_policy()))
      c.fail("structure", where + " has an unknown purpose or policy");
    if (communicator.max_ctas() != 0 &&
        communicator.min_ctas() > communicator.max_ctas())
      c.fail("structure", where + " has at least " +
                              std::to_string(communicator.min_ctas()) +
                              " CTAs and at most " +
                              std::to_string(communicator.max_ctas()));
    if (communicator.needs_window() &&
        (c.plan.memory().empty() || !c.plan.memory(0).symmetric()))
      c.fail("structure", where + " needs a window, but the arena is not "
                                  "symmetric");
    for (int k = 0; k < communicator.axes_size(); ++k) {
      if (!in(communicator.axes(k), c.plan.mesh().axes_size()))
        c.fail("structure", where + " names an axis that does not exist");
      if (k > 0 && communicator.axes(k) <= communicator.axes(k - 1))
        c.fail("structure", where + " must name its axes in mesh order");
    }
  }
  if (c.plan.streams_size() == 0 || c.plan.streams_size() > kMaxStreams)
    c.fail("structure", "plan has " + std::to_string(c.plan.streams_size()) +
                            " streams, expected 1 to " +
                            std::to_string(kMaxStreams));
  for (int i = 0; i < c.plan.streams_size(); ++i)
    if (!pb::Stream::Kind_IsValid(c.plan.streams(i).kind()))
      c.fail("structure",
             "stream " + std::to_string(i) + " has an unknown kind");
}

constexpr std::string_view kBatchInputs[] = {"tokens", "labels"};

void checkIo(Context &c, const pb::Io &io, bool input,
             std::map<std::string, int> &seen) {
  const pb::Model &model = c.plan.model();
  uint64_t tokens =
      model.microbatches() * model.micro_batch() * model.sequence() * 4;
  const std::map<std::string, uint64_t> sizes =
      input ? std::map<std::string, uint64_t>{{"tokens", tokens},
                                              {"labels", tokens},
                                              {"hyper", 32}}
            : std::map<std::string, uint64_t>{
                  {"loss", 4}, {"grad_norm", 4}, {"count", 8}};
  std::string name = c.string(io.name());
  std::string where =
      c.programText() + (input ? "input" : "output") + " '" + name + "'";
  auto known = sizes.find(name);
  // Only a training step is told how to train and says how large gradients are.
  if (known == sizes.end() ||
      (!c.trains() && (name == "hyper" || name == "grad_norm")))
    return c.fail("structure", where + " is none that the runtime knows");
  if (seen[name]++)
    c.fail("structure", where + " is given twice");
  if (!in(io.buffer(), c.plan.buffers_size()))
    return c.fail("structure", where + " is in buffer " +
                                   std::to_string(io.buffer()) +
                                   ", which does not exist");
  const pb::Buffer &buffer = c.buffer(io.buffer());
  if (buffer.kind() != (input ? pb::Buffer::INPUT : pb::Buffer::OUTPUT))
    c.fail("structure", where + " is in " + c.bufferText(io.buffer()) +
                            " of kind " + pb::Buffer::Kind_Name(buffer.kind()));
  if (buffer.size() != known->second)
    c.fail("structure", where + " is in " + c.bufferText(io.buffer()) + " of " +
                            std::to_string(buffer.size()) +
                            " bytes, expected " +
                            std::to_string(known->second));
}

/// The training step is once, body, update; an evaluation has no update, and
/// what comes behind its body is once too.
bool mayFollow(const Context &c, pb::Region::Kind previous,
               pb::Region::Kind kind) {
  if (c.trains())
    return kind >= previous;
  return kind == pb::Region::ONCE || kind == pb::Region::BODY;
}

void checkProgram(Context &c) {
  const pb::Program &program = c.program();
  if (c.programIndex == 0 && !c.trains())
    c.fail("unsupported", "program 0 must be a training step");
  if (c.programIndex > 0 && program.kind() != pb::Program::EVAL)
    c.fail("unsupported", "program " + std::to_string(c.programIndex) +
                              " is of kind " + std::to_string(program.kind()) +
                              ", expected EVAL");
  if (program.rotated())
    c.fail("unsupported", "rotated programs are not supported yet");
  std::map<std::string, int> seen;
  for (const pb::Io &io : program.inputs())
    checkIo(c, io, true, seen);
  for (const pb::Io &io : program.outputs())
    checkIo(c, io, false, seen);

  pb::Region::Kind previous = pb::Region::ONCE;
  int bodies = 0;
  for (int i = 0; i < program.regions_size(); ++i) {
    const pb::Region &region = program.regions(i);
    std::string where = c.programText() + "region " + std::to_string(i);
    if (region.kind() == pb::Region::DRAIN)
      c.fail("unsupported", where + ": drain regions are not supported yet");
    if (!pb::Region::Kind_IsValid(region.kind()) ||
        !mayFollow(c, previous, region.kind()))
      c.fail("structure", where + (c.trains() ? ": the order of regions is "
                                                "once, body, update"
                                              : ": an evaluation has regions "
                                                "once and body only"));
    previous = region.kind();
    bool body = region.kind() == pb::Region::BODY;
    bodies += body;
    uint64_t repeat = body ? c.plan.model().microbatches() : 1;
    if (region.repeat() != repeat)
      c.fail("structure", where + " runs " + std::to_string(region.repeat()) +
                              " times, expected " + std::to_string(repeat));
  }
  if (bodies != 1)
    c.fail("structure", c.programText() + "program has " +
                            std::to_string(bodies) +
                            " body regions, expected one");
}

} // namespace

bool check::isBatchInput(std::string_view name) {
  return std::find(std::begin(kBatchInputs), std::end(kBatchInputs), name) !=
         std::end(kBatchInputs);
}

void check::checkStructure(Context &c) {
  if (c.plan.schema_version() != kSchemaVersion)
    return c.fail("structure", "plan has schema version " +
                                   std::to_string(c.plan.schema_version()) +
                                   ", expected " +
                                   std::to_string(kSchemaVersion));
  // Each table may rely on those before it.
  for (void (*part)(Context &) :
       {checkMesh, checkNumerics, checkModel, checkMemoryRegions, checkBuffers,
        checkLayouts}) {
    part(c);
    if (!c.report.findings.empty())
      return;
  }
  ParameterTable(c).check();
  checkCommunicators(c);
  int programs = c.plan.programs_size();
  if (programs < 1 || programs > 2)
    return c.fail("unsupported", "plan has " + std::to_string(programs) +
                                     " programs, expected the training step "
                                     "and at most one evaluation");
  for (int i = 0; i < programs && !c.full(); ++i) {
    c.programIndex = static_cast<uint32_t>(i);
    checkProgram(c);
    if (c.report.findings.empty())
      checkOperations(c);
  }
  c.programIndex = 0;
}
