//===- ModelFactories.cpp - Bodies of linear, rope, norms, ... ------------===//

#include "Factory.h"
#include "Gemm.h"

#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

//===-- linear ------------------------------------------------------------===//

static ProductMatrix matrix(const Site &site, size_t operand, bool transposed) {
  Shape shape = site.shape(operand);
  return {site.operand(operand).dtype(), shape.rows, shape.columns, shape.pitch,
          site.alignment(operand),       transposed};
}

/// Of the types that the registry allows, those that cuBLASLt multiplies.
static Status needProductTypes(const Site &site, size_t result) {
  namespace pb = plan::pb;
  auto type = [&](size_t operand) { return site.operand(operand).dtype(); };
  for (size_t i = 0; i <= result; ++i)
    if (type(i) != pb::F32 && type(i) != pb::BF16)
      return Status::error("operand " + site.text(i) +
                           " is neither f32 nor bf16, which the cuda backend "
                           "multiplies in");
  if (type(0) == pb::F32 && type(result) == pb::BF16)
    return Status::error("operand " + site.text(result) +
                         " is bf16; cuBLASLt has no product of "
                         "f32 operands that rounds to it; compile with "
                         "--grad-dtype=f32, or run with --backend=host");
  return Status::ok();
}

/// Bytes of the call's scratch, which is operand `operand`; 0 without.
static StatusOr<uint64_t> productScratch(const Site &site, size_t operand) {
  constexpr uint64_t alignment = 256;
  if (site.count() == operand)
    return uint64_t(0);
  if (site.alignment(operand) < alignment)
    return Status::error("operand " + site.text(operand) +
                         " is not aligned to 256 bytes, which cuBLASLt needs");
  return site.shape(operand).elements();
}

/// The product of operands 0 and 1; `biased`, operand 2 is added to each row.
/// The result is the operand behind them.
static StatusOr<KernelBody> makeProduct(const Site &site, bool transposeFirst,
                                        bool transposeSecond,
                                        bool biased = false) {
  const size_t result = biased ? 3 : 2;
  GTP_RETURN_IF_ERROR(needProductTypes(site, result));
  GTP_ASSIGN_OR_RETURN(uint64_t scratch, productScratch(site, result + 1));
  const ProductShape shape = {matrix(site, 0, transposeFirst),
                              matrix(site, 1, transposeSecond),
                              matrix(site, result, false),
                              site.operand(result).accumulate(),
                              scratch,
                              biased ? site.alignment(2) : 0};
  GTP_ASSIGN_OR_RETURN(std::shared_ptr<const Gemm> gemm,
                       Gemm::create(site.context, shape));
  return KernelBody([gemm, scratch, result, biased](const KernelCall &call) {
    return gemm->run(call.as<void>(0), call.as<void>(1), call.as<void>(result),
                     call.add(result),
                     scratch ? call.as<void>(result + 1) : nullptr, call.stream,
                     biased ? call.as<void>(2) : nullptr);
  });
}

static StatusOr<KernelBody> makeLinearBias(const Site &site) {
  return makeProduct(site, false, true, /*biased=*/true);
}
static StatusOr<KernelBody> makeLinear(const Site &site) {
  return makeProduct(site, false, true);
}
static StatusOr<KernelBody> makeLinearDgrad(const Site &site) {
  return makeProduct(site, false, false);
}
static StatusOr<KernelBody> makeLinearWgrad(const Site &site) {
  return makeProduct(site, true, false);
}

//===-- rope --------------------------------------------------------------===//

/// cos of every (position, frequency), then sin of every one.
static size_t ropeTable(const Site &site,
                        const plan::pb::FloatList &frequencies,
                        uint64_t positions) {
  size_t number = 0;
  if (site.context.findConstant(&frequencies, positions, number))
    return number;
  auto count = static_cast<size_t>(frequencies.values_size());
  std::vector<float> table(2 * positions * count);
  for (uint64_t position = 0; position < positions; ++position)
    for (size_t i = 0; i < count; ++i) {
      double angle = static_cast<double>(position) *
                     frequencies.values(static_cast<int>(i));
      table[position * count + i] = static_cast<float>(std::cos(angle));
      table[(positions + position) * count + i] =
          static_cast<float>(std::sin(angle));
    }
  return site.context.addConstant(&frequencies, positions, std::move(table));
}

static StatusOr<KernelBody> makeRope(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  uint64_t positions = site.dim(0, 1);
  const plan::pb::FloatList &frequencies = site.constant("frequencies");
  return KernelBody(
      [context = &site.context, x = Slot(site, 0), y = Slot(site, 1), positions,
       head = static_cast<uint64_t>(site.integer("head_dim")),
       half = static_cast<uint64_t>(frequencies.values_size()),
       inverse = site.integer("inverse") != 0, starts = Starts(site, 2),
       table =
           ropeTable(site, frequencies, positions)](const KernelCall &call) {
        const float *cosines = context->constant(table);
        GTP_CUDA(rope(x.in(call), y.in(call), cosines,
                      cosines + positions * half,
                      {positions, starts.in(call), context->fault()}, head,
                      half, inverse, context->stream(call.stream)));
        return Status::ok();
      });
}

//===-- norms -------------------------------------------------------------===//

/// The weight is operand `weight`.
static StatusOr<NormShape> normShape(const Site &site, size_t weight,
                                     bool centered) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  NormShape shape;
  shape.group = site.shape(weight).columns;
  shape.eps = static_cast<float>(site.real("eps"));
  shape.unitOffset =
      centered ? 0.0f : static_cast<float>(site.integer("unit_offset"));
  shape.centered = centered;
  return shape;
}

template <bool centered>
static StatusOr<KernelBody> makeNorm(const Site &site) {
  GTP_ASSIGN_OR_RETURN(NormShape shape, normShape(site, 1, centered));
  return KernelBody([context = &site.context, shape, x = Slot(site, 0),
                     y = Slot(site, 2)](const KernelCall &call) {
    GTP_CUDA(norm(shape, x.in(call), call.as<void>(1), y.in(call),
                  context->stream(call.stream)));
    return Status::ok();
  });
}

/// The norm of a sum.
template <bool centered>
static StatusOr<KernelBody> makeAddNorm(const Site &site) {
  GTP_ASSIGN_OR_RETURN(NormShape shape, normShape(site, 2, centered));
  return KernelBody([context = &site.context, shape, a = Slot(site, 0),
                     b = Slot(site, 1), sum = Slot(site, 3),
                     y = Slot(site, 4)](const KernelCall &call) {
    GTP_CUDA(addNorm(shape, a.in(call), b.in(call), call.as<void>(2),
                     sum.in(call), y.in(call), context->stream(call.stream)));
    return Status::ok();
  });
}

/// With `adds`, operand 3 is a residual's gradient, and results are behind it.
template <bool centered, bool adds>
static StatusOr<KernelBody> makeNormGrad(const Site &site) {
  GTP_ASSIGN_OR_RETURN(NormShape shape, normShape(site, 2, centered));
  if (!normGradFits(shape.group))
    return Status::error("the norm is over " + std::to_string(shape.group) +
                         " features, more than a block of the GPU has shared "
                         "memory for");
  site.context.needWorkspace(normGradWorkspace(shape.group));
  constexpr size_t result = adds ? 4 : 3;
  // A weight that is not trained has no gradient.
  const bool trained = site.count() > result + 1;
  return KernelBody(
      [context = &site.context, shape, trained, dy = Slot(site, 0),
       x = Slot(site, 1), residual = Slot(site, 3), dx = Slot(site, result),
       dweight =
           Slot(site, trained ? result + 1 : result)](const KernelCall &call) {
        GTP_CUDA(normGrad(shape, dy.in(call), x.in(call), call.as<void>(2),
                          adds ? residual.in(call) : Tensor(), dx.in(call),
                          trained ? dweight.in(call) : Tensor(),
                          static_cast<float *>(context->workspace(call.stream)),
                          context->stream(call.stream)));
        return Status::ok();
      });
}

//===-- embeddings, biases ------------------------------------------------===//

/// Rows are moved, whatever their type.
static StatusOr<KernelBody> makeEmbedding(const Site &site) {
  return KernelBody([context = &site.context, table = Slot(site, 1),
                     out = Slot(site, 2)](const KernelCall &call) {
    GTP_CUDA(embedding(call.as<int32_t>(0), table.in(call), out.in(call),
                       context->fault(), context->stream(call.stream)));
    return Status::ok();
  });
}

static Status needSortableRows(const Site &site) {
  if (site.shape(0).rows > uint64_t(1) << 31)
    return Status::error("operand " + site.text(0) +
                         " has more than 2^31 rows, the most that are sorted");
  return Status::ok();
}

static StatusOr<KernelBody> makeEmbeddingGrad(const Site &site) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  GTP_RETURN_IF_ERROR(needSortableRows(site));
  site.context.needWorkspace(embeddingGradWorkspace(site.shape(0).rows));
  return KernelBody([context = &site.context, dy = Slot(site, 0),
                     dtable = Slot(site, 2)](const KernelCall &call) {
    GTP_CUDA(embeddingGrad(dy.in(call), call.as<int32_t>(1), dtable.in(call),
                           context->workspace(call.stream),
                           context->workspaceBytes(), context->fault(),
                           context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeAddRows(const Site &site, uint64_t period) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  return KernelBody([context = &site.context, x = Slot(site, 0),
                     table = Slot(site, 1), y = Slot(site, 2), period,
                     starts = Starts(site, 3)](const KernelCall &call) {
    GTP_CUDA(addRows(x.in(call), table.in(call), y.in(call),
                     {period, starts.in(call), context->fault()},
                     context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeSumRows(const Site &site, uint64_t period) {
  GTP_RETURN_IF_ERROR(site.needNarrow());
  site.context.needWorkspace(
      sumRowsWorkspace(site.shape(0).rows, site.shape(0).columns, period));
  return KernelBody([context = &site.context, dy = Slot(site, 0),
                     table = Slot(site, 1), period](const KernelCall &call) {
    GTP_CUDA(sumRows(dy.in(call), table.in(call), period,
                     static_cast<double *>(context->workspace(call.stream)),
                     context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeAddBias(const Site &site) {
  return makeAddRows(site, 1);
}
static StatusOr<KernelBody> makeBiasGrad(const Site &site) {
  return makeSumRows(site, 1);
}
static StatusOr<KernelBody> makeAddPositions(const Site &site) {
  return makeAddRows(site, site.dim(0, 1));
}
static StatusOr<KernelBody> makePositionsGrad(const Site &site) {
  Starts starts(site, 2);
  if (!starts.given)
    return makeSumRows(site, site.dim(0, 1));
  GTP_RETURN_IF_ERROR(site.needNarrow());
  GTP_RETURN_IF_ERROR(needSortableRows(site));
  site.context.needWorkspace(sumPositionsWorkspace(site.shape(0).rows));
  return KernelBody([context = &site.context, dy = Slot(site, 0),
                     table = Slot(site, 1), length = site.dim(0, 1),
                     starts](const KernelCall &call) {
    GTP_CUDA(sumPositions(dy.in(call), table.in(call),
                          {length, starts.in(call), context->fault()},
                          context->workspace(call.stream),
                          context->workspaceBytes(),
                          context->stream(call.stream)));
    return Status::ok();
  });
}

static StatusOr<KernelBody> makeDocumentStarts(const Site &site) {
  return KernelBody([context = &site.context, shape = site.shape(0),
                     separator = static_cast<int32_t>(
                         site.integer("separator"))](const KernelCall &call) {
    GTP_CUDA(documentStarts(call.as<int32_t>(0), call.as<int32_t>(1),
                            shape.rows, shape.columns, separator,
                            context->stream(call.stream)));
    return Status::ok();
  });
}

const std::vector<FactoryEntry> &gtp::rt::cuda::modelFactories() {
  static const std::vector<FactoryEntry> table = {
      {"add_bias", makeAddBias},
      {"add_layer_norm", makeAddNorm<true>},
      {"add_positions", makeAddPositions},
      {"add_rms_norm", makeAddNorm<false>},
      {"bias_grad", makeBiasGrad},
      {"document_starts", makeDocumentStarts},
      {"embedding", makeEmbedding},
      {"embedding_grad", makeEmbeddingGrad},
      {"layer_norm", makeNorm<true>},
      {"layer_norm_grad", makeNormGrad<true, false>},
      {"layer_norm_grad_add", makeNormGrad<true, true>},
      {"linear", makeLinear},
      {"linear_bias", makeLinearBias},
      {"linear_dgrad", makeLinearDgrad},
      {"linear_wgrad", makeLinearWgrad},
      {"positions_grad", makePositionsGrad},
      {"rms_norm", makeNorm<false>},
      {"rms_norm_grad", makeNormGrad<false, false>},
      {"rms_norm_grad_add", makeNormGrad<false, true>},
      {"rope", makeRope},
  };
  return table;
}
