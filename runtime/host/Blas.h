//===- Blas.h - Matrix products of the host backend -----------------------===//

#ifndef GTP_RUNTIME_HOST_BLAS_H
#define GTP_RUNTIME_HOST_BLAS_H

#include "gtp/Support/Status.h"

#include <cstdint>

namespace gtp::rt::host {

/// One thread a call, the right code for this CPU, and a check of products
/// against a plain loop. Does its work once in a process.
Status prepareBlas();

/// A row-major float32 matrix; `stride` is the distance of two rows in
/// elements.
struct Matrix {
  const float *data;
  uint64_t stride;
  bool transposed = false;
};

/// out[m, n] = alpha * a[m, k] * b[k, n] + (add ? out : 0), where a and b may
/// be stored transposed. May be called from any thread.
void multiply(uint64_t m, uint64_t n, uint64_t k, float alpha, Matrix a,
              Matrix b, bool add, float *out, uint64_t outStride);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_BLAS_H
