//===- KernelsEmbedding.cpp - embeddings and biases ----------------------===//

#include "Kernel.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt::host;

static Status badId(int32_t id, uint64_t position, uint64_t vocabulary) {
  return Status::error("token id " + std::to_string(id) + " at position " +
                       std::to_string(position) + " is outside the table's " +
                       std::to_string(vocabulary) + " rows");
}

static bool isRow(int32_t id, uint64_t rows) {
  return id >= 0 && static_cast<uint64_t>(id) < rows;
}

/// Table and result have one type, so rows are moved as bytes.
static StatusOr<KernelBody> embedding(const KernelSite &site) {
  return KernelBody([table = site.shape(1),
                     out = site.shape(2)](const KernelCall &call) {
    const auto *ids = call.as<int32_t>(0);
    for (uint64_t row = 0; row < out.rows; ++row) {
      if (!isRow(ids[row], table.rows))
        return badId(ids[row], row, table.rows);
      std::memcpy(call.as<std::byte>(2) + row * out.pitch * out.elementBytes,
                  call.as<std::byte>(1) + static_cast<uint64_t>(ids[row]) *
                                              table.pitch * out.elementBytes,
                  out.columns * out.elementBytes);
    }
    return Status::ok();
  });
}

static StatusOr<KernelBody> embeddingGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody([dy = site.shape(0),
                     table = site.shape(2)](const KernelCall &call) {
    const auto *ids = call.as<int32_t>(1);
    if (!call.add(2))
      std::memset(call.f32(2), 0, table.elements() * sizeof(float));
    for (uint64_t row = 0; row < dy.rows; ++row) {
      if (!isRow(ids[row], table.rows))
        return badId(ids[row], row, table.rows);
      const float *in = call.f32(0) + row * dy.pitch;
      float *out = call.f32(2) + static_cast<uint64_t>(ids[row]) * table.pitch;
      for (uint64_t i = 0; i < table.columns; ++i)
        out[i] += in[i];
    }
    return Status::ok();
  });
}

/// y = x + the row of a table that the row's position names.
static KernelBody addRows(const KernelSite &site, RowPositions positions) {
  return [x = site.shape(0), table = site.shape(1), y = site.shape(2),
          positions](const KernelCall &call) {
    GTP_RETURN_IF_ERROR(positions.check(call, x.rows));
    for (uint64_t row = 0; row < x.rows; ++row) {
      const float *in = call.f32(0) + row * x.pitch;
      const float *term = call.f32(1) + positions.of(call, row) * table.pitch;
      float *out = call.f32(2) + row * y.pitch;
      for (uint64_t i = 0; i < y.columns; ++i)
        out[i] = in[i] + term[i];
    }
    return Status::ok();
  };
}

/// Row p of the table is the sum of the rows of dy whose position is p.
static KernelBody sumRows(const KernelSite &site, RowPositions positions) {
  return [dy = site.shape(0), table = site.shape(1),
          positions](const KernelCall &call) {
    GTP_RETURN_IF_ERROR(positions.check(call, dy.rows));
    // Without documents they are p, p + T, p + 2T, ...
    uint64_t step = positions.starts ? 1 : positions.length;
    double *sums = threadSums(table.columns);
    for (uint64_t p = 0; p < table.rows; ++p) {
      float *out = call.f32(1) + p * table.pitch;
      for (uint64_t i = 0; i < table.columns; ++i)
        sums[i] = call.add(1) ? out[i] : 0.0;
      for (uint64_t row = p; p < positions.length && row < dy.rows;
           row += step) {
        if (positions.of(call, row) != p)
          continue;
        const float *in = call.f32(0) + row * dy.pitch;
        for (uint64_t i = 0; i < table.columns; ++i)
          sums[i] += static_cast<double>(in[i]);
      }
      for (uint64_t i = 0; i < table.columns; ++i)
        out[i] = static_cast<float>(sums[i]);
    }
    return Status::ok();
  };
}

static StatusOr<KernelBody> addBias(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return addRows(site, {});
}

static StatusOr<KernelBody> biasGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return sumRows(site, {});
}

static StatusOr<KernelBody> addPositions(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return addRows(site, site.positions(0, 3));
}

static StatusOr<KernelBody> positionsGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return sumRows(site, site.positions(0, 2));
}

const std::vector<KernelEntry> &gtp::rt::host::embeddingKernels() {
  static const std::vector<KernelEntry> table = {
      {"add_bias", addBias},
      {"add_positions", addPositions},
      {"bias_grad", biasGrad},
      {"embedding", embedding, true},
      {"embedding_grad", embeddingGrad},
      {"positions_grad", positionsGrad},
  };
  return table;
}
