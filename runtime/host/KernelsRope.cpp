//===- KernelsRope.cpp - Rotary position embedding ------------------------===//

#include "Kernel.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::rt::host;

static std::shared_ptr<const RopeTable>
tableFor(const KernelSite &site, const plan::pb::FloatList &frequencies,
         uint64_t positions) {
  auto &entry = site.tables.rope[{&frequencies, positions}];
  if (!entry) {
    auto table = std::make_shared<RopeTable>();
    for (uint64_t position = 0; position < positions; ++position)
      for (double frequency : frequencies.values()) {
        double angle = static_cast<double>(position) * frequency;
        table->cosines.push_back(static_cast<float>(std::cos(angle)));
        table->sines.push_back(static_cast<float>(std::sin(angle)));
      }
    entry = std::move(table);
  }
  return entry;
}

static StatusOr<KernelBody> rope(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  RowPositions positions = site.positions(0, 2);
  return KernelBody(
      [x = site.shape(0), y = site.shape(1), positions,
       head = static_cast<uint64_t>(site.integer("head_dim")),
       half = static_cast<uint64_t>(site.constant("frequencies").values_size()),
       sign = site.integer("inverse") ? -1.0f : 1.0f,
       table = tableFor(site, site.constant("frequencies"), positions.length)](
          const KernelCall &call) {
        GTP_RETURN_IF_ERROR(positions.check(call, x.rows));
        for (uint64_t row = 0; row < x.rows; ++row) {
          uint64_t position = positions.of(call, row);
          const float *cosines = &table->cosines[position * half];
          const float *sines = &table->sines[position * half];
          for (uint64_t start = 0; start < x.columns; start += head) {
            const float *in = call.f32(0) + row * x.pitch + start;
            float *out = call.f32(1) + row * y.pitch + start;
            for (uint64_t i = 0; i < half; ++i) {
              float low = in[i], high = in[i + half], sine = sign * sines[i];
              out[i] = low * cosines[i] - high * sine;
              out[i + half] = high * cosines[i] + low * sine;
            }
            if (in != out)
              std::copy(in + 2 * half, in + head, out + 2 * half);
          }
        }
        return Status::ok();
      });
}

const std::vector<KernelEntry> &gtp::rt::host::ropeKernels() {
  static const std::vector<KernelEntry> table = {{"rope", rope}};
  return table;
}
