//===- Gemm.cpp - Matrix products through cuBLASLt ------------------------===//

#include "Gemm.h"

#include "Check.h"

using namespace gtp;
using namespace gtp::rt::cuda;

namespace {

/// What NVIDIA documents for Hopper and newer.
constexpr uint64_t kWorkspace = uint64_t(32) << 20;

/// cuBLASLt is column-major: what is row-major [R, C] here is C x R there, and
/// d = a b becomes d^T = b^T a^T.
class LtGemm : public Gemm {
public:
  explicit LtGemm(Context &context) : context(context) {}
  ~LtGemm() override;
  Status plan(const MatrixShape &a, const MatrixShape &b, const MatrixShape &d);
  Status run(const void *a, const void *b, void *d, bool add,
             uint32_t stream) const override;

private:
  Status choose(const MatrixShape &a, const MatrixShape &b,
                const MatrixShape &d, cublasLtMatmulPreference_t preference);

  Context &context;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

} // namespace

static cudaDataType_t dataType(Element type) {
  return type == Element::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static Status makeLayout(cublasLtMatrixLayout_t &layout,
                         const MatrixShape &shape) {
  GTP_CUDA(cublasLtMatrixLayoutCreate(&layout, dataType(shape.type),
                                      shape.columns, shape.rows,
                                      static_cast<int64_t>(shape.pitch)));
  return Status::ok();
}

LtGemm::~LtGemm() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (description)
    cublasLtMatmulDescDestroy(description);
}

Status LtGemm::plan(const MatrixShape &a, const MatrixShape &b,
                    const MatrixShape &d) {
  GTP_CUDA(
      cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t opFirst = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t opSecond = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  GTP_CUDA(cublasLtMatmulDescSetAttribute(
      description, CUBLASLT_MATMUL_DESC_TRANSA, &opFirst, sizeof opFirst));
  GTP_CUDA(cublasLtMatmulDescSetAttribute(
      description, CUBLASLT_MATMUL_DESC_TRANSB, &opSecond, sizeof opSecond));
  GTP_RETURN_IF_ERROR(makeLayout(first, b));
  GTP_RETURN_IF_ERROR(makeLayout(second, a));
  GTP_RETURN_IF_ERROR(makeLayout(result, d));
  cublasLtMatmulPreference_t preference = nullptr;
  GTP_CUDA(cublasLtMatmulPreferenceCreate(&preference));
  Status status = choose(a, b, d, preference);
  cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

Status LtGemm::choose(const MatrixShape &a, const MatrixShape &b,
                      const MatrixShape &d,
                      cublasLtMatmulPreference_t preference) {
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                 const auto &value) {
    return check(cublasLtMatmulPreferenceSetAttribute(preference, attribute,
                                                      &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  GTP_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, size_t(kWorkspace)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                          uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          static_cast<uint32_t>(b.alignment)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          static_cast<uint32_t>(a.alignment)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                          static_cast<uint32_t>(d.alignment)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                          static_cast<uint32_t>(d.alignment)));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context.blas(), description, first, second, result, result, preference, 1,
      &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0)
    return Status::error(
        "cuBLASLt has no deterministic algorithm for " +
        std::to_string(d.rows) + " x " + std::to_string(d.columns) + " x " +
        std::to_string(a.transposed ? a.rows : a.columns) + " (row pitches " +
        std::to_string(a.pitch) + ", " + std::to_string(b.pitch) + " and " +
        std::to_string(d.pitch) + "): " + cublasLtGetStatusString(status));
  algorithm = found.algo;
  context.needWorkspace(found.workspaceSize);
  return Status::ok();
}

Status LtGemm::run(const void *a, const void *b, void *d, bool add,
                   uint32_t stream) const {
  const float alpha = 1, beta = add ? 1 : 0;
  GTP_CUDA(cublasLtMatmul(context.blas(), description, &alpha, b, first, a,
                          second, &beta, d, result, d, result, &algorithm,
                          context.workspace(stream), context.workspaceBytes(),
                          context.stream(stream)));
  return Status::ok();
}

StatusOr<std::shared_ptr<const Gemm>> Gemm::create(Context &context,
                                                   const MatrixShape &a,
                                                   const MatrixShape &b,
                                                   const MatrixShape &d) {
  auto gemm = std::make_shared<LtGemm>(context);
  GTP_RETURN_IF_ERROR(gemm->plan(a, b, d));
  return std::shared_ptr<const Gemm>(std::move(gemm));
}
