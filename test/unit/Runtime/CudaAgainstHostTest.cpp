//===- CudaAgainstHostTest.cpp - Kernels at sizes that matter -------------===//
//
// KernelsTest compares with the registry's text on small shapes. Here shapes
// span many blocks and tiles, and do not divide by them; the host backend is
// the reference.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "CallOnBoth.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

class CudaAgainstHost : public TestOnBackend {};

TEST_F(CudaAgainstHost, Linear) {
  for (auto [rows, k, n] : {std::array<uint64_t, 3>{257, 1000, 333},
                            {512, 256, 768},
                            {1, 515, 1031},
                            {40, 264, 50257}}) {
    SCOPED_TRACE(std::to_string(rows) + ", " + std::to_string(k) + ", " +
                 std::to_string(n));
    // Float32 operands and results, bf16 operands and either.
    for (auto [type, result] : {std::pair{pb::F32, pb::F32},
                                {pb::BF16, pb::F32},
                                {pb::BF16, pb::BF16}}) {
      // A float32 sum is off by what grows with the root of its terms; one that
      // differs in its last bits may round to the next bf16.
      auto tolerance = [&, result = result](uint64_t terms) {
        return std::max(2e-5, 1e-6 * std::sqrt(double(terms))) +
               (result == pb::F32 ? 0 : 1.0 / 256);
      };
      Call("linear")
          .type(type)
          .random({rows, k}, 3)
          .random({n, k})
          .type(result)
          .result({rows, n}, 5)
          .compare(tolerance(k));
      Call("linear_bias")
          .type(type)
          .random({rows, k}, 3)
          .random({n, k})
          .type(result)
          .random({n})
          .result({rows, n}, 5)
          .compare(tolerance(k));
      Call("linear_dgrad")
          .type(type)
          .random({rows, n}, 1)
          .random({n, k})
          .type(result)
          .result({rows, k})
          .compare(tolerance(n));
      Call("linear_wgrad")
          .type(type)
          .random({rows, n}, 8)
          .random({rows, k})
          .type(result)
          .result({n, k})
          .compare(tolerance(rows));
    }
  }
}

struct AttentionCase {
  uint64_t batch, length, heads, kvHeads, head;
  bool causal;
  int64_t window;
  double softcap;
  bool packed = false;
};

TEST_F(CudaAgainstHost, Attention) {
  for (AttentionCase c : {AttentionCase{2, 300, 8, 2, 64, true, 0, 0},
                          AttentionCase{1, 129, 4, 4, 128, true, 50, 0},
                          AttentionCase{1, 97, 2, 1, 256, true, 0, 5},
                          AttentionCase{2, 300, 4, 2, 64, true, 0, 0, true},
                          AttentionCase{2, 131, 2, 2, 80, true, 20, 5, true},
                          AttentionCase{1, 200, 3, 3, 80, false, 0, 0}}) {
    Dims q{c.batch, c.length, c.heads * c.head};
    Dims k{c.batch, c.length, c.kvHeads * c.head};
    Dims lse{c.batch, c.heads, c.length};
    auto attributes = [&](Call &call) {
      if (c.packed)
        call.starts(c.batch, c.length);
      call.integer("heads", int64_t(c.heads))
          .integer("kv_heads", int64_t(c.kvHeads))
          .real("scale", 1 / std::sqrt(double(c.head)))
          .integer("causal", c.causal)
          .integer("window", c.window)
          .real("softcap", c.softcap)
          .compare();
    };
    Call forward("attention");
    forward.random(q, 16).random(k).random(k).result(q).result(lse).scratch(
        c.length * c.length * 4);
    attributes(forward);
    // lse is given, not made: what it is does not matter, only that it is one.
    Call backward("attention_grad");
    backward.random(q).random(q, 16).random(k).random(k).random(q);
    backward.random(lse).result(q).result(k, 2).result(k).scratch(c.length *
                                                                  c.length * 8);
    attributes(backward);
  }
}

/// Both types of tensors, of which a plan may have either.
const pb::DType kTypes[] = {pb::F32, pb::BF16};

TEST_F(CudaAgainstHost, Norms) {
  // Whole rows in registers, of a warp and of a block, in packs and not; rows
  // that are too long for that; and gaps that break the alignment.
  for (pb::DType type : kTypes)
    for (auto [rows, groups, features, gap] :
         {std::array<uint64_t, 4>{1000, 1, 4096, 0},
          {333, 1, 777, 0},
          {600, 8, 128, 64},
          {70, 3, 80, 3},
          {40, 1, 20000, 0}}) {
      Dims x{rows, groups * features};
      for (const char *name : {"rms_norm", "layer_norm"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random({features})
            .result(x, gap)
            .real("eps", 1e-5)
            .compare();
      for (const char *name : {"rms_norm_grad", "layer_norm_grad"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .result(x)
            .type(pb::F32)
            .result({features})
            .real("eps", 1e-5)
            .compare();
      for (const char *name : {"add_rms_norm", "add_layer_norm"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .result(x)
            .result(x, gap)
            .real("eps", 1e-5)
            .compare();
      // A neighbour of what is added to the residual is no neighbour of the
      // sum.
      for (const char *name : {"rms_norm_grad_add", "layer_norm_grad_add"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .random(x, gap)
            .result(x)
            .type(pb::F32)
            .result({features})
            .real("eps", 1e-5)
            .compare(type == pb::BF16 ? 0.01 : 2e-5);
    }
}

TEST_F(CudaAgainstHost, Elementwise) {
  for (pb::DType type : kTypes)
    for (auto [rows, columns, gap] : {std::array<uint64_t, 3>{1000, 1536, 512},
                                      {333, 777, 0},
                                      {64, 1001, 7},
                                      {1, 3, 0}}) {
      Dims x{rows, columns};
      Call("swiglu")
          .type(type)
          .random(x, gap)
          .random(x, gap)
          .result(x)
          .compare();
      Call("swiglu_grad")
          .type(type)
          .random(x)
          .random(x, gap)
          .random(x, gap)
          .result(x, gap)
          .result(x, gap)
          .compare();
      Call("gelu")
          .type(type)
          .random(x, gap)
          .result(x)
          .integer("approximate", 1)
          .compare();
      Call("bias_gelu")
          .type(type)
          .random(x, gap)
          .random({columns})
          .result(x)
          .result(x, gap)
          .integer("approximate", 1)
          .compare();
      Call("add").type(type).random(x, gap).random(x).result(x).compare(0);
      Call("add").type(type).random(x).random(x).random(x).result(x).compare(0);
      Call("mul").type(type).random(x).random(x, gap).result(x).compare(0);
      Call("cast").type(type).random(x, gap).type(pb::BF16).result(x).compare(
          0);
      Call("cast").type(type).random(x).type(pb::F32).result(x, gap).compare(0);
    }
}

/// As the norm of all gradients of a large model has.
TEST_F(CudaAgainstHost, ManyAddends) {
  Call call("add");
  call.type(pb::BF16);
  for (int i = 0; i < 300; ++i)
    call.random({2, 5}, i % 3);
  call.result({2, 5}).compare(0);
}

TEST_F(CudaAgainstHost, Rope) {
  for (pb::DType type : kTypes)
    for (auto [heads, head, turned, gap] :
         {std::array<uint64_t, 4>{8, 128, 64, 1024},
          {3, 64, 8, 0},
          {5, 20, 6, 0},
          {2, 128, 64, 3}}) {
      Call call("rope");
      std::vector<double> frequencies;
      for (uint64_t i = 0; i < turned; ++i)
        frequencies.push_back(std::pow(0.9, double(i)));
      call.type(type)
          .random({2, 150, heads * head}, gap)
          .result({2, 150, heads * head})
          .integer("head_dim", int64_t(head))
          .integer("inverse", 1)
          .constant("frequencies", frequencies)
          .compare();
    }
}

TEST_F(CudaAgainstHost, Embeddings) {
  for (pb::DType type : kTypes)
    for (uint64_t columns : {259, 1024}) {
      Call("embedding")
          .ids({4, 1000}, 701)
          .type(type)
          .random({701, columns})
          .result({4, 1000, columns})
          .compare(0);
      // Sums run in the same order, so that they are the same.
      for (pb::DType gradient : kTypes)
        Call("embedding_grad")
            .type(type)
            .random({4, 1000, columns})
            .ids({4, 1000}, 701)
            .type(gradient)
            .result({701, columns})
            .compare(0);
      Call("bias_grad")
          .type(type)
          .random({5003, columns})
          .type(pb::F32)
          .result({columns})
          .compare(1e-6);
    }
  Call("positions_grad").random({7, 130, 65}).result({200, 65}).compare(1e-6);
  Call("positions_grad")
      .random({7, 130, 65})
      .result({200, 65})
      .starts(7, 130)
      .compare(1e-6);
  for (pb::DType type : kTypes) {
    Call("add_positions")
        .type(type)
        .random({7, 130, 65})
        .random({200, 65})
        .result({7, 130, 65})
        .compare(0);
    Call("add_positions")
        .type(type)
        .random({7, 130, 64})
        .random({200, 64})
        .result({7, 130, 64})
        .starts(7, 130)
        .compare(0);
  }
}

TEST_F(CudaAgainstHost, Loss) {
  for (pb::DType type : kTypes)
    for (uint64_t classes : {50257, 32000}) {
      Call("cross_entropy")
          .type(type)
          .random({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .type(pb::F32)
          .result({})
          .compare(1e-6);
      Call("cross_entropy_grad")
          .type(type)
          .random({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .number(1)
          .result({500, classes})
          .compare(1e-5);
      Call("cross_entropy_in_place")
          .type(type)
          .result({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .number(1)
          .type(pb::F32)
          .result({})
          .compare(1e-5);
    }
}

TEST_F(CudaAgainstHost, Updates) {
  for (pb::DType gradient : kTypes)
    for (uint64_t count : {100000, 4099}) {
      Call call("adamw");
      call.result({count}).result({count}).result({count}).positive();
      call.type(gradient);
      call.random({count}).numbers({8}, 0.5).number(0.25);
      call.type(pb::BF16).result({count}).integer("decay", 1).compare(1e-6);
      Call("sum_squares")
          .type(gradient)
          .random({count})
          .wideResult()
          .compare(1e-12);
    }
}

} // namespace
