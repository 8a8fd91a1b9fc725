//===- PlanToProto.cpp - The plan dialect as a protobuf message -----------===//
//
// Message fields and op fields have the same names and order, so this file is a
// transcription; what it adds is interning and indices for SSA values and
// symbols.
//
//===----------------------------------------------------------------------===//

#include "gtp/Conversion/PlanToProto.h"

#include "gtp/Analysis/CostModel.h"

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Plan/PlanFile.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;
namespace pb = gtp::plan::pb;

namespace {

/// Protocol Buffers' text is UTF-8; what a file's name or a location has else
/// is for people to read, and becomes U+FFFD.
std::string readable(StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

/// Sets the fields of `message` that `fields` names.
LogicalResult setFields(DictionaryAttr fields,
                        google::protobuf::Message &message, Operation *op) {
  if (!fields)
    return success();
  const google::protobuf::Descriptor *type = message.GetDescriptor();
  const google::protobuf::Reflection *reflection = message.GetReflection();
  using Field = google::protobuf::FieldDescriptor;
  for (NamedAttribute entry : fields) {
    auto mismatch = [&] {
      return op->emitOpError() << "has no field '" << entry.getName().strref()
                               << "' of the kind of " << entry.getValue()
                               << " in message " << type->name();
    };
    const Field *field = type->FindFieldByName(entry.getName().str());
    if (!field)
      return mismatch();
    Attribute value = entry.getValue();
    if (field->is_repeated()) {
      auto list = dyn_cast<ArrayAttr>(value);
      if (!list || field->cpp_type() != Field::CPPTYPE_STRING)
        return mismatch();
      for (Attribute element : list) {
        auto text = dyn_cast<StringAttr>(element);
        if (!text)
          return mismatch();
        reflection->AddString(&message, field, readable(text));
      }
      continue;
    }
    auto integer = dyn_cast<IntegerAttr>(value);
    if (integer && !integer.getValue().isSignedIntN(64))
      return mismatch();
    auto real = dyn_cast<FloatAttr>(value);
    auto text = dyn_cast<StringAttr>(value);
    auto typed = dyn_cast<TypeAttr>(value);
    switch (field->cpp_type()) {
    case Field::CPPTYPE_UINT64:
      if (!integer)
        return mismatch();
      reflection->SetUInt64(&message, field, integer.getValue().getSExtValue());
      break;
    case Field::CPPTYPE_UINT32:
      if (!integer || !llvm::isUInt<32>(integer.getValue().getSExtValue()))
        return mismatch();
      reflection->SetUInt32(&message, field, integer.getValue().getSExtValue());
      break;
    case Field::CPPTYPE_BOOL:
      if (!integer)
        return mismatch();
      reflection->SetBool(&message, field, !integer.getValue().isZero());
      break;
    case Field::CPPTYPE_DOUBLE:
      if (!real)
        return mismatch();
      reflection->SetDouble(&message, field, real.getValueAsDouble());
      break;
    case Field::CPPTYPE_STRING:
      if (!text)
        return mismatch();
      reflection->SetString(&message, field, readable(text));
      break;
    case Field::CPPTYPE_ENUM:
      if (!typed || field->enum_type() != pb::DType_descriptor() ||
          dtypeOf(typed.getValue()) == pb::DTYPE_INVALID)
        return mismatch();
      reflection->SetEnumValue(&message, field, dtypeOf(typed.getValue()));
      break;
    default:
      return mismatch();
    }
  }
  return success();
}

class Emitter {
public:
  Emitter(ProgramOp program, pb::Plan &plan) : program(program), plan(plan) {
    plan.add_strings("");
    strings[StringRef()] = 0;
  }

  LogicalResult emit(PlanSteps *steps);

private:
  uint32_t intern(StringRef text) {
    auto [it, isNew] = strings.try_emplace(text, strings.size());
    if (isNew)
      plan.add_strings(readable(text));
    return it->second;
  }
  uint32_t intern(DenseF64ArrayAttr list);
  uint32_t intern(LayoutAttr layout);
  uint32_t bufferIndex(Value buffer) const { return buffers.lookup(buffer); }

  LogicalResult emitHeader();
  LogicalResult emitProgram(Block &block, pb::Program::Kind kind,
                            PlanSteps *steps);
  LogicalResult emitBuffer(BufferOp op);
  void emitParameter(ParameterOp op);
  void emitCommunicator(CommunicatorOp op);
  LogicalResult emitRegion(RegionOp op, pb::Region &region,
                           std::vector<Operation *> *steps);
  LogicalResult emitStep(StepOpInterface step, pb::Operation &out);
  LogicalResult emitKernel(KernelOp op, pb::Kernel &out);
  void emitCollective(CollectiveOp op, pb::Collective &out);
  void emitOperand(Value buffer, Attribute view, pb::Operand &out);
  uint32_t parameterPlus1(FlatSymbolRefAttr symbol) const {
    return symbol ? parameters.lookup(symbol.getAttr()) + 1 : 0;
  }

  ProgramOp program;
  pb::Plan &plan;
  llvm::StringMap<uint32_t> strings;
  DenseMap<Attribute, uint32_t> constants, layouts, parameters, communicators;
  DenseMap<Value, uint32_t> buffers;
};

uint32_t Emitter::intern(DenseF64ArrayAttr list) {
  auto [it, isNew] = constants.try_emplace(list, plan.constants_size());
  if (isNew)
    plan.add_constants()->mutable_values()->Add(list.asArrayRef().begin(),
                                                list.asArrayRef().end());
  return it->second;
}

uint32_t Emitter::intern(LayoutAttr layout) {
  auto [it, isNew] = layouts.try_emplace(layout, plan.layouts_size());
  if (!isNew)
    return it->second;
  pb::Layout *out = plan.add_layouts();
  for (DimAttr dim : layout.getDims()) {
    pb::LayoutDim *outDim = out->add_dims();
    outDim->set_logical(dim.getLogical());
    for (SegmentAttr segment : dim.getSegments()) {
      pb::Segment *outSegment = outDim->add_segments();
      outSegment->set_name(intern(segment.getName().strref()));
      outSegment->set_size(segment.getSize());
    }
    for (int64_t axis : dim.getCompute())
      outDim->add_compute_axes(axis);
    for (int64_t axis : dim.getStorage())
      outDim->add_storage_axes(axis);
    outDim->set_granule(dim.getGranule());
  }
  return it->second;
}

LogicalResult Emitter::emitHeader() {
  plan.set_producer("gtp-opt 0.1.0");
  MeshAttr mesh = program.getMesh();
  for (auto [name, degree] : llvm::zip(mesh.getNames(), mesh.getDegrees())) {
    pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
    axis->set_name(name.str());
    axis->set_degree(degree);
  }
  if (failed(
          setFields(program.getModelAttr(), *plan.mutable_model(), program)) ||
      failed(setFields(program.getNumericsAttr(), *plan.mutable_numerics(),
                       program)) ||
      failed(setFields(program.getProvenanceAttr(), *plan.mutable_provenance(),
                       program)) ||
      failed(
          setFields(program.getClaimsAttr(), *plan.mutable_claims(), program)))
    return failure();
  pb::MemoryRegion *memory = plan.add_memory();
  memory->set_kind(pb::MemoryRegion::DEVICE);
  memory->set_size(program.getArena());
  memory->set_alignment(kBufferAlignment);
  return success();
}

LogicalResult Emitter::emitBuffer(BufferOp op) {
  if (!op.getOffset())
    return op.emitOpError("has no offset; run plan-assign-memory first");
  buffers[op.getResult()] = plan.buffers_size();
  pb::Buffer *out = plan.add_buffers();
  out->set_kind(pb::Buffer::Kind(op.getKind()));
  out->set_offset(*op.getOffset());
  out->set_size(op.getSize());
  out->set_name(intern(op.getName()));
  return success();
}

void Emitter::emitParameter(ParameterOp op) {
  parameters[op.getSymNameAttr()] = plan.parameters_size();
  pb::Parameter *out = plan.add_parameters();
  out->set_name(intern(op.getSymName()));
  for (int64_t dim : op.getShape())
    out->add_shape(dim);
  out->set_layout(intern(op.getLayout()));
  for (auto [name, rows] : llvm::zip(op.getTensorNames(), op.getTensorRows())) {
    pb::CheckpointTensor *tensor = out->add_tensors();
    tensor->set_name(intern(cast<StringAttr>(name).strref()));
    tensor->set_rows(rows);
  }
  // Two numbers a tensor: those of tfm.parameter.
  for (int i = 0; op.getTensorLayouts() && i < out->tensors_size(); ++i) {
    int64_t groups = (*op.getTensorLayouts())[2 * i];
    if (groups == tfm::ParameterOp::kTransposed) {
      out->mutable_tensors(i)->set_transposed(true);
      continue;
    }
    out->mutable_tensors(i)->set_interleaved_groups(groups);
    out->mutable_tensors(i)->set_interleaved_parts(
        (*op.getTensorLayouts())[2 * i + 1]);
  }
  out->set_init(pb::Parameter::Init(op.getInit()));
  out->set_decay(op.getDecay());
  out->set_frozen(op.getFrozen());
  out->set_uses(op.getUses());
  out->set_compute_buffer(bufferIndex(op.getCompute()));
  if (op.getMaster())
    out->set_master_buffer_plus1(bufferIndex(op.getMaster()) + 1);
  if (op.getRemainder())
    out->set_remainder_buffer_plus1(bufferIndex(op.getRemainder()) + 1);
  for (Value state : op.getStates())
    out->add_state_buffers(bufferIndex(state));
  if (op.getGradient())
    out->set_gradient_buffer_plus1(bufferIndex(op.getGradient()) + 1);
  if (ArrayAttr tied = op.getTiedAttr())
    for (Attribute name : tied)
      out->add_tied_names(intern(cast<StringAttr>(name).strref()));
}

void Emitter::emitCommunicator(CommunicatorOp op) {
  communicators[op.getSymNameAttr()] = plan.communicators_size();
  pb::Communicator *out = plan.add_communicators();
  for (int64_t axis : op.getAxes())
    out->add_axes(axis);
  out->set_purpose(pb::Communicator::Purpose(op.getPurpose()));
  out->set_cta_policy(pb::Communicator::CtaPolicy(op.getCtaPolicy()));
  out->set_min_ctas(op.getMinCtas());
  out->set_max_ctas(op.getMaxCtas());
  out->set_priority(op.getPriority());
  out->set_needs_window(op.getNeedsWindow());
  out->set_spans_nodes(op.getSpansNodes());
  if (op.getNeedsWindow())
    plan.mutable_memory(0)->set_symmetric(true);
}

void Emitter::emitOperand(Value buffer, Attribute attr, pb::Operand &out) {
  auto view = cast<ViewAttr>(attr);
  out.set_buffer(bufferIndex(buffer));
  out.set_offset(view.getOffset());
  out.set_dtype(dtypeOf(view.getDtype()));
  for (int64_t dim : view.getDims())
    out.add_dims(dim);
  out.set_pitch(view.getPitch());
  out.set_iteration_stride(view.getIterationStride());
  ArrayRef<int64_t> strides = view.getRankStrides();
  for (size_t i = 0; i + 1 < strides.size(); i += 2) {
    pb::AxisStride *stride = out.add_rank_strides();
    stride->set_axis(strides[i]);
    stride->set_stride(strides[i + 1]);
  }
  out.set_accumulate(view.getAccumulate());
}

LogicalResult Emitter::emitKernel(KernelOp op, pb::Kernel &out) {
  out.set_name(intern(op.getName()));
  const plan::KernelSpec *spec = plan::lookupKernel(op.getName());
  out.set_version(spec ? spec->version : 0);
  for (auto [buffer, view] : llvm::zip(op.getBuffers(), op.getViews()))
    emitOperand(buffer, view, *out.add_operands());
  if (DictionaryAttr settings = op.getSettingsAttr())
    for (NamedAttribute entry : settings) {
      pb::Attribute *attribute = out.add_attributes();
      attribute->set_name(intern(entry.getName().strref()));
      if (auto real = dyn_cast<FloatAttr>(entry.getValue()))
        attribute->set_f(real.getValueAsDouble());
      else if (auto integer = dyn_cast<IntegerAttr>(entry.getValue());
               integer && integer.getValue().isSignedIntN(64))
        attribute->set_i(integer.getValue().getSExtValue());
      else if (auto list = dyn_cast<DenseF64ArrayAttr>(entry.getValue()))
        attribute->set_constant(intern(list));
      else
        return op.emitOpError() << "has setting '" << entry.getName().strref()
                                << "' that is no f64, i64 or list of f64";
    }
  out.set_parameter_plus1(parameterPlus1(op.getParameterAttr()));
  out.set_second_parameter_plus1(parameterPlus1(op.getSecondParameterAttr()));
  out.set_algorithm(intern(op.getAlgorithm()));
  out.set_sm_target(op.getSmTarget());
  return success();
}

void Emitter::emitCollective(CollectiveOp op, pb::Collective &out) {
  out.set_kind(pb::Collective::Kind(op.getKind()));
  out.set_communicator(
      communicators.lookup(op.getCommunicatorAttr().getAttr()));
  unsigned members = op.getMembers();
  for (unsigned i = 0; i < members; ++i) {
    emitOperand(op.getBuffers()[i], op.getViews()[i], *out.add_sources());
    emitOperand(op.getBuffers()[members + i], op.getViews()[members + i],
                *out.add_destinations());
  }
  out.set_reduce(pb::Collective::Reduce(op.getReduce()));
  out.set_wire(dtypeOf(op.getWire()));
  out.set_accumulation(dtypeOf(op.getAccumulation()));
  out.set_order(pb::Collective::Order(op.getOrder()));
  out.set_transport(pb::Collective::Transport(op.getTransport()));
  out.set_ctas(op.getCtas());
  out.set_chunk_bytes(op.getChunkBytes());
  out.set_parameter_plus1(parameterPlus1(op.getParameterAttr()));
  if (op.hasScratch())
    emitOperand(op.getBuffers().back(), op.getViews()[2 * members],
                *out.mutable_scratch());
}

LogicalResult Emitter::emitStep(StepOpInterface step, pb::Operation &out) {
  if (!step.getAfter().empty())
    return step->emitOpError(
        "still waits for tokens; run plan-insert-events first");
  out.set_stream(step.getStream());
  for (int64_t event : step.getWaits())
    out.add_waits()->set_event(event);
  if (std::optional<int64_t> event = step.getEvent())
    out.set_event_plus1(*event + 1);
  out.set_source(intern(sourceName(step->getLoc())));
  out.set_duration(std::min<int64_t>(step.getDuration(), UINT32_MAX));
  out.set_when(pb::Operation::When(step.getWhen()));
  OperandRange touched = step.getBuffers();
  ArrayAttr views = step.getViews();
  if (auto kernel = dyn_cast<KernelOp>(*step))
    return emitKernel(kernel, *out.mutable_kernel());
  if (auto collective = dyn_cast<CollectiveOp>(*step)) {
    emitCollective(collective, *out.mutable_collective());
  } else if (isa<CopyOp>(*step)) {
    emitOperand(touched[0], views[0], *out.mutable_copy()->mutable_source());
    emitOperand(touched[1], views[1],
                *out.mutable_copy()->mutable_destination());
  } else {
    auto fill = cast<FillOp>(*step);
    emitOperand(touched[0], views[0],
                *out.mutable_fill()->mutable_destination());
    out.mutable_fill()->set_byte_value(fill.getByte());
  }
  return success();
}

LogicalResult Emitter::emitRegion(RegionOp op, pb::Region &region,
                                  std::vector<Operation *> *steps) {
  region.set_kind(pb::Region::Kind(op.getKind()));
  region.set_repeat(op.getRepeat());
  region.set_events(op.getEvents());
  for (auto step : op.getOps<StepOpInterface>()) {
    if (failed(emitStep(step, *region.add_operations())))
      return failure();
    if (steps)
      steps->push_back(step);
  }
  return success();
}

LogicalResult Emitter::emitProgram(Block &block, pb::Program::Kind kind,
                                   PlanSteps *steps) {
  pb::Program *out = plan.add_programs();
  out->set_kind(kind);
  if (steps)
    steps->programs.emplace_back();
  for (Operation &op : block) {
    if (auto buffer = dyn_cast<BufferOp>(op)) {
      if (failed(emitBuffer(buffer)))
        return failure();
    } else if (auto parameter = dyn_cast<ParameterOp>(op)) {
      emitParameter(parameter);
    } else if (auto communicator = dyn_cast<CommunicatorOp>(op)) {
      emitCommunicator(communicator);
    } else if (auto stream = dyn_cast<StreamOp>(op)) {
      pb::Stream *entry = plan.add_streams();
      entry->set_kind(pb::Stream::Kind(stream.getKind()));
      entry->set_priority(stream.getPriority());
    } else if (auto input = dyn_cast<InputOp>(op)) {
      pb::Io *io = out->add_inputs();
      io->set_name(intern(input.getName()));
      io->set_buffer(bufferIndex(input.getBuffer()));
    } else if (auto output = dyn_cast<OutputOp>(op)) {
      pb::Io *io = out->add_outputs();
      io->set_name(intern(output.getName()));
      io->set_buffer(bufferIndex(output.getBuffer()));
    } else if (auto region = dyn_cast<RegionOp>(op)) {
      std::vector<Operation *> *list =
          steps ? &steps->programs.back().emplace_back() : nullptr;
      if (failed(emitRegion(region, *out->add_regions(), list)))
        return failure();
    } else if (!isa<SubprogramOp>(op)) {
      return op.emitOpError("is not part of a plan");
    }
  }
  return success();
}

LogicalResult Emitter::emit(PlanSteps *steps) {
  if (failed(emitHeader()) ||
      failed(emitProgram(program.getBody().front(), pb::Program::TRAIN_STEP,
                         steps)))
    return failure();
  for (auto other : program.getOps<SubprogramOp>())
    if (failed(emitProgram(other.getBody().front(),
                           pb::Program::Kind(other.getKind()), steps)))
      return failure();
  plan::sealPlan(plan);
  return success();
}

} // namespace

LogicalResult gtp::emitPlan(ProgramOp program, pb::Plan &plan,
                            PlanSteps *steps) {
  return Emitter(program, plan).emit(steps);
}

ProgramOp gtp::findProgram(Operation *module) {
  ProgramOp found;
  for (Region &region : module->getRegions())
    for (auto program : region.getOps<ProgramOp>()) {
      if (found) {
        InFlightDiagnostic diag =
            emitError(program.getLoc(), "there is a second plan.program");
        diag.attachNote(found.getLoc()) << "the first is here";
        return {};
      }
      found = program;
    }
  if (!found)
    emitError(module->getLoc(),
              "there is no plan.program; run convert-gtp-to-plan first");
  return found;
}
