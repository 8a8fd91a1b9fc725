//===- KernelsDocuments.cpp - Where documents of a sequence start ---------===//

#include "Kernel.h"

using namespace gtp;
using namespace gtp::rt::host;

RowPositions KernelSite::positions(size_t x, size_t starts) const {
  RowPositions positions;
  positions.length = dim(x, 1);
  if (starts < count())
    positions.starts = starts;
  return positions;
}

Status RowPositions::check(const KernelCall &call, uint64_t rows) const {
  if (!starts)
    return Status::ok();
  const auto *values = call.as<const int32_t>(*starts);
  for (uint64_t row = 0; row < rows; ++row)
    if (values[row] < 0 || static_cast<uint64_t>(values[row]) > row % length)
      return Status::error(
          "the document of token " + std::to_string(row % length) +
          " of a sequence starts at " + std::to_string(values[row]) +
          ", expected an index from 0 to the token's");
  return Status::ok();
}

static StatusOr<KernelBody> documentStarts(const KernelSite &site) {
  return KernelBody(
      [shape = site.shape(0),
       separator = site.integer("separator")](const KernelCall &call) {
        for (uint64_t row = 0; row < shape.rows; ++row) {
          const auto *tokens = call.as<const int32_t>(0) + row * shape.columns;
          auto *starts = call.as<int32_t>(1) + row * shape.columns;
          int32_t start = 0;
          for (uint64_t t = 0; t < shape.columns; ++t) {
            starts[t] = start;
            if (tokens[t] == separator)
              start = static_cast<int32_t>(t + 1);
          }
        }
        return Status::ok();
      });
}

const std::vector<KernelEntry> &gtp::rt::host::documentKernels() {
  static const std::vector<KernelEntry> table = {
      {"document_starts", documentStarts},
  };
  return table;
}
