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

/// NCCL has a channel a CTA and 64 channels; what asks for more gets these
/// without a word.
constexpr uint32_t kMostCtas = 64;
/// Above any GPU's. That a plan fits the GPU at hand is asked when it runs.
constexpr uint32_t kMostMultiprocessors = 1024;

void checkCollectiveClaim(Context &c) {
  if (c.plan.claims().collective_ctas() > kMostMultiprocessors)
    c.fail("structure",
           "claims: collectives may hold " +
               std::to_string(c.plan.claims().collective_ctas()) +
               " CTAs together, expected at most " +
               std::to_string(kMostMultiprocessors) +
               ", more multiprocessors than a GPU has, or 0 for no limit");
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
    if (std::max(communicator.min_ctas(), communicator.max_ctas()) > kMostCtas)
      c.fail("structure",
             where + " takes " + std::to_string(communicator.min_ctas()) +
                 " to " + std::to_string(communicator.max_ctas()) +
                 " CTAs, expected at most " + std::to_string(kMostCtas) +
                 ", or 0 for the library's default");
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

} // namespace

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
  checkParameters(c);
  checkCollectiveClaim(c);
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
