//===- Gemm.cpp - Matrix products through cuBLASLt ------------------------===//

#include "Gemm.h"

#include "Check.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

/// The library's list is ordered by a guess; the fastest has been among so
/// many.
static constexpr int kMostCandidates = 24;

/// Sums stay in one sequence, or in parts that a second step adds in order.
/// What adds into the result's type would round more than once.
static constexpr uint32_t kReductions =
    CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

static cudaDataType_t dataType(pb::DType type) {
  return type == pb::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

Status gtp::rt::cuda::checkProductWorkspace(uint64_t bytes,
                                            uint64_t scratchBytes) {
  if (bytes <= scratchBytes)
    return Status::ok();
  return Status::error("it needs a workspace of " + std::to_string(bytes) +
                       " bytes; the plan gives the product " +
                       std::to_string(scratchBytes) + " of scratch");
}

/// cuBLASLt is column-major: what is row-major [R, C] here is C x R there, and
/// d = a b becomes d^T = b^T a^T. Its bias has an element for each row of that
/// d^T, which is a feature.
static Status makeLayout(cublasLtMatrixLayout_t &layout,
                         const ProductMatrix &matrix) {
  GTP_CUDA(cublasLtMatrixLayoutCreate(&layout, dataType(matrix.type),
                                      matrix.columns, matrix.rows,
                                      static_cast<int64_t>(matrix.pitch)));
  return Status::ok();
}

Gemm::~Gemm() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (description)
    cublasLtMatmulDescDestroy(description);
}

Status Gemm::describe(const ProductShape &shape) {
  product = shape;
  GTP_CUDA(
      cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasOperation_t opFirst = shape.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t opSecond = shape.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  GTP_CUDA(cublasLtMatmulDescSetAttribute(
      description, CUBLASLT_MATMUL_DESC_TRANSA, &opFirst, sizeof opFirst));
  GTP_CUDA(cublasLtMatmulDescSetAttribute(
      description, CUBLASLT_MATMUL_DESC_TRANSB, &opSecond, sizeof opSecond));
  if (shape.biasAlignment) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    GTP_CUDA(cublasLtMatmulDescSetAttribute(description,
                                            CUBLASLT_MATMUL_DESC_EPILOGUE,
                                            &epilogue, sizeof epilogue));
    const auto type = static_cast<int32_t>(dataType(shape.d.type));
    GTP_CUDA(cublasLtMatmulDescSetAttribute(
        description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    // What chooses an algorithm reads no bias, but takes from the address how
    // those of the calls are aligned.
    GTP_CUDA(setBias(reinterpret_cast<const void *>(shape.biasAlignment)));
  }
  GTP_RETURN_IF_ERROR(makeLayout(first, shape.b));
  GTP_RETURN_IF_ERROR(makeLayout(second, shape.a));
  GTP_RETURN_IF_ERROR(makeLayout(result, shape.d));
  cublasLtMatmulPreference_t preference = nullptr;
  GTP_CUDA(cublasLtMatmulPreferenceCreate(&preference));
  Status status = findCandidates(preference);
  cublasLtMatmulPreferenceDestroy(preference);
  return status;
}

//===-- attributes --------------------------------------------------------===//

namespace {
/// An attribute of ProductAlgorithm, in its order, as the library calls it.
struct Attribute {
  cublasLtMatmulAlgoConfigAttributes_t name;
  size_t bytes;
};
} // namespace

static constexpr Attribute kAttributes[ProductAlgorithm::kAttributes] = {
    {CUBLASLT_ALGO_CONFIG_ID, 4},
    {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

StatusOr<ProductAlgorithm>
Gemm::attributes(const cublasLtMatmulAlgo_t &algorithm) {
  ProductAlgorithm attributes;
  for (size_t i = 0; i < attributes.values.size(); ++i) {
    size_t written = 0;
    // Little-endian: the short ones fill the low half.
    GTP_CUDA(cublasLtMatmulAlgoConfigGetAttribute(
        &algorithm, kAttributes[i].name, &attributes.values[i],
        kAttributes[i].bytes, &written));
  }
  return attributes;
}

StatusOr<Gemm::Choice> Gemm::build(const ProductAlgorithm &attributes) const {
  Choice choice;
  choice.attributes = attributes;
  GTP_CUDA(cublasLtMatmulAlgoInit(
      context.blas(), CUBLAS_COMPUTE_32F, CUDA_R_32F, dataType(product.b.type),
      dataType(product.a.type), dataType(product.d.type),
      dataType(product.d.type),
      static_cast<int>(attributes.values[ProductAlgorithm::Id]),
      &choice.algorithm));
  for (size_t i = 0; i < attributes.values.size(); ++i)
    if (i != ProductAlgorithm::Id)
      GTP_CUDA(cublasLtMatmulAlgoConfigSetAttribute(
          &choice.algorithm, kAttributes[i].name, &attributes.values[i],
          kAttributes[i].bytes));
  cublasLtMatmulHeuristicResult_t found = {};
  GTP_CUDA(cublasLtMatmulAlgoCheck(context.blas(), description, first, second,
                                   result, result, &choice.algorithm, &found));
  choice.workspaceBytes = found.workspaceSize;
  GTP_RETURN_IF_ERROR(
      checkProductWorkspace(choice.workspaceBytes, product.scratchBytes));
  return choice;
}

//===-- candidates --------------------------------------------------------===//

static Status setPreferences(cublasLtMatmulPreference_t preference,
                             const ProductShape &shape) {
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                 const auto &value) {
    return check(cublasLtMatmulPreferenceSetAttribute(preference, attribute,
                                                      &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  GTP_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, shape.scratchBytes));
  GTP_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          static_cast<uint32_t>(shape.b.alignment)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          static_cast<uint32_t>(shape.a.alignment)));
  GTP_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                          static_cast<uint32_t>(shape.d.alignment)));
  return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
             static_cast<uint32_t>(shape.d.alignment));
}

Status Gemm::findCandidates(cublasLtMatmulPreference_t preference) {
  GTP_RETURN_IF_ERROR(setPreferences(preference, product));
  cublasLtMatmulHeuristicResult_t list[kMostCandidates] = {};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context.blas(), description, first, second, result, result, preference,
      kMostCandidates, list, &count);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    if (list[i].state != CUBLAS_STATUS_SUCCESS)
      continue;
    GTP_ASSIGN_OR_RETURN(ProductAlgorithm found, attributes(list[i].algo));
    StatusOr<Choice> built = build(found);
    if (choices.empty()) {
      Choice given;
      given.algorithm = list[i].algo;
      given.workspaceBytes = list[i].workspaceSize;
      if (built.isOk() && std::memcmp(&built->algorithm, &given.algorithm,
                                      sizeof given.algorithm) == 0)
        given.attributes = found;
      choices.push_back(given);
    }
    auto isFound = [&](const Choice &choice) {
      return choice.attributes && *choice.attributes == found;
    };
    if (built.isOk() && std::none_of(choices.begin(), choices.end(), isFound))
      choices.push_back(*built);
  }
  if (choices.empty())
    return Status::error(
        "cuBLASLt has no deterministic algorithm for the product " +
        product.text() + " in " + std::to_string(product.scratchBytes) +
        " bytes of scratch: " + cublasLtGetStatusString(status));
  chosen = choices.front();
  return Status::ok();
}

StatusOr<std::shared_ptr<const Gemm>> Gemm::create(Context &context,
                                                   const ProductShape &shape) {
  std::shared_ptr<Gemm> &known = context.products[shape.text()];
  if (!known) {
    auto gemm = std::make_shared<Gemm>(context);
    GTP_RETURN_IF_ERROR(gemm->describe(shape));
    known = std::move(gemm);
  }
  return std::shared_ptr<const Gemm>(known);
}

//===-- calls -------------------------------------------------------------===//

/// The description that all calls share: cuBLASLt reads it when it is called,
/// and one thread issues.
cublasStatus_t Gemm::setBias(const void *bias) const {
  return cublasLtMatmulDescSetAttribute(
      description, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
      static_cast<const void *>(&bias), sizeof bias);
}

cublasStatus_t Gemm::run(const Choice &choice, const void *a, const void *b,
                         void *d, bool add, void *workspace,
                         cudaStream_t stream, const void *bias) const {
  if (product.biasAlignment)
    if (cublasStatus_t status = setBias(bias); status != CUBLAS_STATUS_SUCCESS)
      return status;
  const float alpha = 1, beta = add ? 1 : 0;
  return cublasLtMatmul(context.blas(), description, &alpha, b, first, a,
                        second, &beta, d, result, d, result, &choice.algorithm,
                        workspace, choice.workspaceBytes, stream);
}

Status Gemm::run(const void *a, const void *b, void *d, bool add,
                 void *workspace, uint32_t stream, const void *bias) const {
  return check(
      run(chosen, a, b, d, add, workspace, context.stream(stream), bias),
      "cublasLtMatmul");
}
