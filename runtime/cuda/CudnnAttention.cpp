//===- CudnnAttention.cpp - Attention of bf16 by cuDNN --------------------===//
//
// cudnn-frontend makes the graph of operations that cuDNN's engines recognize.
// It is the one file that includes it: the headers take a compiler half a
// minute.
//
//===----------------------------------------------------------------------===//

#include "CudnnAttention.h"

#include <cudnn_frontend.h>

#include <dlfcn.h>
#include <map>
#include <tuple>

using namespace gtp;
using namespace gtp::rt::cuda;
namespace fe = cudnn_frontend;

/// Where the frontend looks up cuDNN's functions.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

namespace {

/// The oldest whose gradients are right for every length of sequence.
constexpr size_t kOldestVersion = 91501;

std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Status failure(const std::string &doing, fe::error_t error) {
  return Status::error("cuDNN failed in " + doing + ": " + error.get_message());
}

/// Names of operands in the frontend's graphs: their numbers in the registry.
using Uid = int64_t;

class Attention : public CudnnAttention {
public:
  Attention(cudnnHandle_t handle, const AttentionProblem &problem)
      : handle(handle), problem(problem) {}

  /// A reason if cuDNN does not take the problem.
  fe::error_t describe();
  /// Empty if one of its algorithms was built; else why the last was not.
  StatusOr<std::string> build(uint64_t available);

  uint64_t scratchBytes() const override { return bytes; }
  Status run(void *const *operands, void *scratch,
             cudaStream_t stream) const override;

private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  /// Operand `uid` of `heads` heads, as [batch, heads, token, feature].
  fe::graph::Tensor_attributes layout(Uid uid, uint64_t heads) const;
  Tensor query(Uid uid) {
    return graph.tensor(layout(uid, problem.shape.heads));
  }
  Tensor key(Uid uid) {
    return graph.tensor(layout(uid, problem.shape.kvHeads));
  }
  /// The same for lse, which is dense.
  fe::graph::Tensor_attributes lseLayout(Uid uid) const;
  /// A result of the graph's last operation.
  static void bind(const Tensor &result,
                   const fe::graph::Tensor_attributes &place);
  template <typename Attributes>
  void mask(Attributes &attributes) const;
  void forward();
  void backward();

  cudnnContext *const handle;
  const AttentionProblem problem;
  fe::graph::Graph graph;
  int64_t algorithm = -1;
  uint64_t bytes = 0;
};

class Library : public Cudnn {
public:
  explicit Library(cudnnHandle_t handle)
      : handle(handle, fe::detail::destroy_handle) {}

  std::string name() const override {
    return "cuDNN " + versionText(fe::detail::get_backend_version());
  }
  StatusOr<MadeAttention> attention(const AttentionProblem &problem,
                                    uint64_t scratchBytes) override;

private:
  using Key =
      std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, float, bool,
                 uint64_t, bool, bool, std::vector<uint64_t>, uint64_t>;
  const std::unique_ptr<cudnnContext, cudnnStatus_t (*)(cudnnHandle_t)> handle;
  std::map<Key, MadeAttention> made;
};

} // namespace

fe::graph::Tensor_attributes Attention::layout(Uid uid, uint64_t heads) const {
  const AttentionShape &s = problem.shape;
  auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
  int64_t pitch = size(problem.pitches[static_cast<size_t>(uid)]);
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_name("operand" + std::to_string(uid))
      .set_dim({size(s.batch), size(heads), size(s.length), size(s.head)})
      .set_stride({size(s.length) * pitch, size(s.head), pitch, 1});
}

fe::graph::Tensor_attributes Attention::lseLayout(Uid uid) const {
  const AttentionShape &s = problem.shape;
  auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_name("lse")
      .set_dim({size(s.batch), size(s.heads), size(s.length), 1})
      .set_stride({size(s.heads * s.length), size(s.length), 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

void Attention::bind(const Tensor &result,
                     const fe::graph::Tensor_attributes &place) {
  result->set_output(true)
      .set_uid(place.get_uid())
      .set_dim(place.get_dim())
      .set_stride(place.get_stride())
      .set_data_type(place.get_data_type());
}

template <typename Attributes>
void Attention::mask(Attributes &attributes) const {
  const AttentionShape &s = problem.shape;
  attributes.set_attn_scale(s.scale);
  if (s.causal)
    attributes.set_causal_mask(true);
  // Both say of key j and query i: j + window > i.
  if (s.window)
    attributes.set_diagonal_band_left_bound(static_cast<int>(s.window));
}

void Attention::forward() {
  fe::graph::SDPA_attributes attributes;
  attributes.set_name("attention").set_generate_stats(true);
  mask(attributes);
  auto [out, lse] = graph.sdpa(query(0), key(1), key(2), attributes);
  bind(out, layout(3, problem.shape.heads));
  bind(lse, lseLayout(4));
}

void Attention::backward() {
  fe::graph::SDPA_backward_attributes attributes;
  attributes.set_name("attention_grad")
      .set_deterministic_algorithm(!problem.fast);
  mask(attributes);
  Tensor dout = query(0), q = query(1), k = key(2), v = key(3), out = query(4);
  Tensor lse = graph.tensor(lseLayout(5));
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, lse, attributes);
  bind(dq, layout(6, problem.shape.heads));
  bind(dk, layout(7, problem.shape.kvHeads));
  bind(dv, layout(8, problem.shape.kvHeads));
}

fe::error_t Attention::describe() {
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  problem.gradient ? backward() : forward();
  for (auto step :
       {+[](Attention &a) { return a.graph.validate(); },
        +[](Attention &a) { return a.graph.build_operation_graph(a.handle); },
        +[](Attention &a) {
          return a.graph.create_execution_plans({fe::HeurMode_t::A});
        }})
    if (fe::error_t error = step(*this); error.is_bad())
      return error;
  return {fe::error_code_t::OK, ""};
}

StatusOr<std::string> Attention::build(uint64_t available) {
  std::string reason = "it offers no algorithm";
  std::optional<uint64_t> least;
  for (int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
    if (fe::error_t error = graph.build_plan_at_index(handle, i);
        error.is_bad()) {
      reason = error.get_message();
      continue;
    }
    int64_t needed = 0;
    if (fe::error_t error = graph.get_workspace_size_plan_at_index(i, needed);
        error.is_bad())
      return failure("asking for an algorithm's scratch", error);
    if (static_cast<uint64_t>(needed) <= available) {
      algorithm = i;
      bytes = static_cast<uint64_t>(needed);
      return std::string();
    }
    least = std::min(least.value_or(UINT64_MAX), static_cast<uint64_t>(needed));
  }
  if (least)
    return Status::error(
        "cuDNN needs " + std::to_string(*least) +
        " bytes of scratch for it and the plan has " +
        std::to_string(available) +
        ": compile for a target whose profile has \"scratch\" of that kernel "
        "for cuDNN (--target=h100, h200 or gb200, or a file of your own)");
  return reason;
}

Status Attention::run(void *const *operands, void *scratch,
                      cudaStream_t stream) const {
  std::unordered_map<int64_t, void *> places;
  for (size_t i = 0; i < problem.pitches.size(); ++i)
    places[static_cast<int64_t>(i)] = operands[i];
  if (fe::detail::set_stream(handle, stream) != CUDNN_STATUS_SUCCESS)
    return Status::error("cuDNN does not take the stream");
  fe::error_t error =
      graph.execute_plan_at_index(handle, places, scratch, algorithm);
  return error.is_bad() ? failure("launching attention", error) : Status::ok();
}

StatusOr<MadeAttention> Library::attention(const AttentionProblem &problem,
                                           uint64_t scratchBytes) {
  const AttentionShape &s = problem.shape;
  Key key{s.batch,          s.length,     s.heads,         s.kvHeads,
          s.head,           s.scale,      s.causal,        s.window,
          problem.gradient, problem.fast, problem.pitches, scratchBytes};
  if (auto found = made.find(key); found != made.end())
    return found->second;
  MadeAttention result;
  // What the frontend loads itself, it throws of.
  try {
    auto attention = std::make_shared<Attention>(handle.get(), problem);
    fe::error_t error = attention->describe();
    if (error.is_bad()) {
      result.refusal = error.get_message();
    } else {
      GTP_ASSIGN_OR_RETURN(result.refusal, attention->build(scratchBytes));
      if (result.refusal.empty())
        result.attention = attention;
    }
  } catch (const std::exception &error) {
    return Status::error("cuDNN cannot be used: " + std::string(error.what()));
  }
  made.emplace(std::move(key), result);
  return result;
}

/// Whether there is the library; else `dlerror` says why not.
static bool loadLibrary() {
  void *&library = fe::cudnn_dlhandle;
  if (!library)
    library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
  return library;
}

std::string Cudnn::installed() {
  return loadLibrary()
             ? "cuDNN " + versionText(fe::detail::get_backend_version())
             : "no cuDNN";
}

StatusOr<std::shared_ptr<Cudnn>> Cudnn::load() {
  const std::string needs = "attention of bf16 needs cuDNN " +
                            versionText(kOldestVersion) +
                            " or a later one of version 9";
  if (!loadLibrary())
    return Status::error(needs + ", which cannot be loaded (" +
                         std::string(dlerror()) +
                         "): install it or add its folder to "
                         "LD_LIBRARY_PATH, or compile with --dtype=f32");
  // The frontend would take version 12 where both are.
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", "libcudart.so.13", /*replace=*/0);
  try {
    size_t version = fe::detail::get_backend_version();
    if (version < kOldestVersion || version >= 100000)
      return Status::error(needs + "; libcudnn.so.9 here is " +
                           versionText(version));
    cudnnHandle_t handle = nullptr;
    if (cudnnStatus_t status = fe::detail::create_handle(&handle);
        status != CUDNN_STATUS_SUCCESS)
      return Status::error("cuDNN cannot be set up on the GPU (error " +
                           std::to_string(status) + ")");
    return std::shared_ptr<Cudnn>(std::make_shared<Library>(handle));
  } catch (const std::exception &error) {
    return Status::error(needs + ": " + error.what());
  }
}
