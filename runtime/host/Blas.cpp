//===- Blas.cpp - Matrix products of the host backend ---------------------===//

#include "Blas.h"
#include "RaceAnnotations.h"

#include <cblas.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

using namespace gtp;
using namespace gtp::rt::host;

// OpenBLAS only; another CBLAS leaves them null.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
[[gnu::weak]] void openblas_set_num_threads(int threads);
[[gnu::weak]] int openblas_get_parallel(void);
[[gnu::weak]] char *openblas_get_corename(void);
[[gnu::weak]] void gotoblas_dynamic_init(void);
[[gnu::weak]] void gotoblas_dynamic_quit(void);
// NOLINTEND(readability-identifier-naming)
}

namespace {

/// OpenBLAS built without threads hands one work buffer to two callers at once
/// and returns wrong products (Debian's "serial" 0.3.21 does); calls into such
/// a build take turns.
bool callsTakeTurns = false;
std::mutex turn;

} // namespace

static std::string coreName() {
  return openblas_get_corename ? openblas_get_corename() : "unknown";
}

/// OpenBLAS takes a CPU it is too old to know for one of 2004, at a fifth of
/// the speed. An OPENBLAS_CORETYPE of the user wins.
static void chooseCore() {
#if defined(__x86_64__)
  if (std::getenv("OPENBLAS_CORETYPE") || !gotoblas_dynamic_init ||
      !gotoblas_dynamic_quit)
    return;
  bool old = false;
  for (const char *name :
       {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem"})
    old |= coreName() == name;
  if (!old || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return;
  bool wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 0);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
#endif
}

/// Whether `multiply` agrees with a plain loop in all uses the kernels make.
static bool productIsRight(uint64_t m, uint64_t n, uint64_t k, bool transposeA,
                           bool transposeB, bool add) {
  const uint64_t strideA = (transposeA ? m : k) + 3;
  const uint64_t strideB = (transposeB ? k : n) + 1;
  const uint64_t strideOut = n + 2;
  auto value = [](uint64_t index) {
    return static_cast<float>(static_cast<int>(index * 37 % 101) - 50) / 64.0f;
  };
  std::vector<float> a((transposeA ? k : m) * strideA),
      b((transposeB ? n : k) * strideB);
  std::vector<float> out(m * strideOut, 0.5f);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = value(i);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = value(i + 17);
  multiply(m, n, k, 0.5f, {a.data(), strideA, transposeA},
           {b.data(), strideB, transposeB}, add, out.data(), strideOut);
  for (uint64_t i = 0; i < m; ++i)
    for (uint64_t j = 0; j < strideOut; ++j) {
      double want = 0;
      for (uint64_t l = 0; l < k && j < n; ++l)
        want += 0.5 * a[transposeA ? l * strideA + i : i * strideA + l] *
                b[transposeB ? j * strideB + l : l * strideB + j];
      if (add || j >= n)
        want += 0.5;
      // Also refuses NaN.
      if (!(std::fabs(out[i * strideOut + j] - want) <=
            1e-5 * static_cast<double>(k)))
        return false;
    }
  return true;
}

static Status prepareOnce() {
  if (openblas_set_num_threads)
    openblas_set_num_threads(1);
  chooseCore();
  callsTakeTurns = openblas_get_parallel && openblas_get_parallel() == 0;
  const uint64_t sizes[][3] = {
      {1, 1, 1}, {5, 3, 7}, {33, 65, 17}, {70, 31, 131}, {1, 129, 40}};
  for (const auto &[m, n, k] : sizes)
    for (int variant = 0; variant < 8; ++variant)
      if (!productIsRight(m, n, k, variant & 1, variant & 2, variant & 4))
        return Status::error(
            "the BLAS library computes a wrong matrix product on this machine "
            "(core type " +
            coreName() +
            "); set OPENBLAS_CORETYPE to another core type, such as Haswell "
            "or Prescott, or install another version of the library");
  return Status::ok();
}

Status gtp::rt::host::prepareBlas() {
  static const Status result = prepareOnce();
  return result;
}

void gtp::rt::host::multiply(uint64_t m, uint64_t n, uint64_t k, float alpha,
                             Matrix a, Matrix b, bool add, float *out,
                             uint64_t outStride) {
  if (m == 0 || n == 0)
    return;
  if (k == 0) {
    for (uint64_t row = 0; row < m && !add; ++row)
      std::memset(out + row * outStride, 0, n * sizeof(float));
    return;
  }
  IgnoreLibrary ignore;
  std::unique_lock<std::mutex> lock(turn, std::defer_lock);
  if (callsTakeTurns)
    lock.lock();
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a.data,
              static_cast<int>(a.stride), b.data, static_cast<int>(b.stride),
              add ? 1.0f : 0.0f, out, static_cast<int>(outStride));
}
