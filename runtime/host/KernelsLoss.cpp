//===- KernelsLoss.cpp - Cross entropy and the count of labels ------------===//

#include "Kernel.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gtp;
using namespace gtp::rt::host;

namespace {
constexpr int32_t kIgnoredLabel = -100;
} // namespace

static Status checkLabel(int32_t label, uint64_t row, uint64_t vocabulary) {
  if (label >= 0 && static_cast<uint64_t>(label) < vocabulary)
    return Status::ok();
  return Status::error("label " + std::to_string(label) + " at position " +
                       std::to_string(row) + " is neither -100 nor one of " +
                       std::to_string(vocabulary) + " classes");
}

/// log(sum exp(x)) is maximum + log(sum), where sum is over exp(x - maximum).
namespace {
struct Softmax {
  float maximum;
  double sum;
};
} // namespace

static Softmax softmaxOf(const float *x, uint64_t count) {
  float most = maximum(x, count);
  double sum = sumOf(count, [=](uint64_t i) {
    return static_cast<double>(fastExp(x[i] - most));
  });
  return {most, sum};
}

static double countOf(const KernelCall &call, size_t operand) {
  return static_cast<double>(
      std::max<int64_t>(1, *call.as<const int64_t>(operand)));
}

static int64_t countedIn(const int32_t *labels, uint64_t count) {
  int64_t counted = 0;
  for (uint64_t i = 0; i < count; ++i)
    counted += labels[i] != kIgnoredLabel;
  return counted;
}

/// Rows whose terms have one weight: a sequence, or all of them.
static uint64_t rowsOfOneWeight(const KernelSite &site) {
  return site.integer("sequence_mean") ? site.shape(1).columns
                                       : site.shape(0).rows;
}

static StatusOr<KernelBody> crossEntropy(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody(
      [logits = site.shape(0), length = rowsOfOneWeight(site),
       mean = site.integer("sequence_mean") != 0](const KernelCall &call) {
        const auto *labels = call.as<int32_t>(1);
        double total = 0;
        for (uint64_t start = 0; start < logits.rows; start += length) {
          double sum = 0;
          for (uint64_t row = start; row < start + length; ++row) {
            if (labels[row] == kIgnoredLabel)
              continue;
            GTP_RETURN_IF_ERROR(checkLabel(labels[row], row, logits.columns));
            const float *x = call.f32(0) + row * logits.pitch;
            auto [most, exps] = softmaxOf(x, logits.columns);
            sum += static_cast<float>(
                std::log(exps) + (static_cast<double>(most) - x[labels[row]]));
          }
          int64_t counted = mean ? countedIn(labels + start, length) : 1;
          total += sum / static_cast<double>(std::max<int64_t>(1, counted));
        }
        auto loss = static_cast<float>(total / countOf(call, 2));
        *call.f32(3) = call.add(3) ? *call.f32(3) + loss : loss;
        return Status::ok();
      });
}

static StatusOr<KernelBody> crossEntropyGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  return KernelBody(
      [logits = site.shape(0), out = site.shape(4),
       length = rowsOfOneWeight(site),
       mean = site.integer("sequence_mean") != 0](const KernelCall &call) {
        const auto *labels = call.as<int32_t>(1);
        double scale = *call.f32(3) / countOf(call, 2);
        for (uint64_t row = 0; row < logits.rows; ++row) {
          if (mean && row % length == 0)
            scale = *call.f32(3) / countOf(call, 2) /
                    static_cast<double>(
                        std::max<int64_t>(1, countedIn(labels + row, length)));
          const float *x = call.f32(0) + row * logits.pitch;
          float *dx = call.f32(4) + row * out.pitch;
          if (labels[row] == kIgnoredLabel) {
            std::memset(dx, 0, out.columns * sizeof(float));
            continue;
          }
          GTP_RETURN_IF_ERROR(checkLabel(labels[row], row, logits.columns));
          auto [most, sum] = softmaxOf(x, logits.columns);
          float correct = x[labels[row]];
          auto factor = static_cast<float>(scale / sum);
          for (uint64_t i = 0; i < out.columns; ++i)
            dx[i] = fastExp(x[i] - most) * factor;
          // 1 - p from the other side: p near 1 would lose the difference.
          double p = static_cast<double>(fastExp(correct - most)) / sum;
          dx[labels[row]] = static_cast<float>(scale * (p - 1));
        }
        return Status::ok();
      });
}

static StatusOr<KernelBody> countLabels(const KernelSite &site) {
  if (!site.integer("sequences"))
    return KernelBody(
        [count = site.shape(0).elements()](const KernelCall &call) {
          *call.as<int64_t>(1) = countedIn(call.as<int32_t>(0), count);
          return Status::ok();
        });
  return KernelBody([labels = site.shape(0)](const KernelCall &call) {
    int64_t sequences = 0;
    for (uint64_t row = 0; row < labels.rows; ++row)
      sequences += countedIn(call.as<int32_t>(0) + row * labels.columns,
                             labels.columns) > 0;
    *call.as<int64_t>(1) = sequences;
    return Status::ok();
  });
}

const std::vector<KernelEntry> &gtp::rt::host::lossKernels() {
  static const std::vector<KernelEntry> table = {
      {"count_labels", countLabels},
      {"cross_entropy", crossEntropy},
      {"cross_entropy_grad", crossEntropyGrad},
  };
  return table;
}
