//===- Staging.cpp - bfloat16 operands of float32 kernels -----------------===//

#include "Staging.h"

#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Support/BFloat16.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;
using namespace gtp::rt::host;

namespace {
/// An operand that the body sees as dense float32.
struct Staged {
  size_t operand;
  Shape shape; ///< as stored
  bool read, written;
  uint64_t first; ///< float of the thread's memory
};
} // namespace

static void widen(const Staged &staged, const std::byte *from, float *to) {
  const Shape &shape = staged.shape;
  const auto *values = reinterpret_cast<const BFloat16 *>(from);
  for (uint64_t row = 0; row < shape.rows; ++row)
    for (uint64_t i = 0; i < shape.columns; ++i)
      to[row * shape.columns + i] = values[row * shape.pitch + i];
}

static void round(const Staged &staged, const float *from, std::byte *to) {
  const Shape &shape = staged.shape;
  auto *values = reinterpret_cast<BFloat16 *>(to);
  for (uint64_t row = 0; row < shape.rows; ++row)
    for (uint64_t i = 0; i < shape.columns; ++i)
      values[row * shape.pitch + i] = BFloat16(from[row * shape.columns + i]);
}

StatusOr<KernelBody> gtp::rt::host::makeBody(const CallSite &site,
                                             const KernelEntry &entry,
                                             KernelTables &tables) {
  pb::Kernel wide = site.proto();
  const size_t count = site.count();
  std::vector<Staged> all;
  std::optional<uint64_t> floats = 0;
  for (size_t i = 0; i < count && !entry.anyType; ++i) {
    pb::Operand &operand = *wide.mutable_operands(static_cast<int>(i));
    if (operand.dtype() != pb::BF16)
      continue;
    Access access = site.operandKind(i).access;
    Shape shape = site.shape(i);
    all.push_back(
        {i, shape, access != Access::Write, access != Access::Read, *floats});
    operand.set_dtype(pb::F32);
    operand.set_pitch(0);
    // Each on cache lines of its own.
    floats = checkedAdd(*floats, (shape.elements() + 15) / 16 * 16);
    if (!floats)
      return Status::error("its bf16 operands are too large together");
  }
  GTP_ASSIGN_OR_RETURN(
      KernelBody body,
      entry.factory(KernelSite(site.withKernel(wide), site, tables)));
  if (all.empty())
    return body;
  return KernelBody(
      [all, body, count, floats = *floats](const KernelCall &call) {
        // Kept between calls, so that steps after the first allocate nothing.
        thread_local std::vector<float> memory;
        thread_local std::vector<Argument> arguments;
        if (memory.size() < floats)
          memory.resize(floats);
        arguments.assign(call.arguments, call.arguments + count);
        for (const Staged &staged : all) {
          Argument &argument = arguments[staged.operand];
          float *values = memory.data() + staged.first;
          if (staged.read || argument.add)
            widen(staged, argument.data, values);
          argument.data = reinterpret_cast<std::byte *>(values);
        }
        GTP_RETURN_IF_ERROR(
            body({arguments.data(), call.coordinates, call.stream}));
        for (const Staged &staged : all)
          if (staged.written)
            round(staged, memory.data() + staged.first,
                  call.arguments[staged.operand].data);
        return Status::ok();
      });
}
