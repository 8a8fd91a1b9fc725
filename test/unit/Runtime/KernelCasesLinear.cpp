//===- KernelCasesLinear.cpp - Matrix products, biases, learned positions ===//

#include "KernelCases.h"

using namespace gtp;
using namespace gtp::test;

namespace {

Tensor linear(const std::vector<Tensor> &in) {
  const Tensor &x = in[0], &w = in[1];
  Dims dims = x.dims;
  dims.back() = w.dims[0];
  Tensor y(dims);
  for (uint64_t row = 0; row < x.rows(); ++row)
    for (uint64_t n = 0; n < w.dims[0]; ++n)
      for (uint64_t k = 0; k < w.dims[1]; ++k)
        y.at(row, n) += x.at(row, k) * w.at(n, k);
  return y;
}

void testLinear(const std::string &name) {
  for (auto [batch, length, k, n] :
       {std::array<uint64_t, 4>{2, 3, 7, 5}, {1, 1, 1, 1}, {3, 5, 33, 17}}) {
    Tensor x = randomTensor({batch, length, k}, 1);
    Tensor w = randomTensor({n, k}, 2);
    Tensor dy = randomTensor({batch, length, n}, 3);
    // Without scratch, with little, and with enough for sums in parts.
    for (uint64_t scratch : {0, 256, 1 << 20}) {
      KernelCase test(name);
      if (name == "linear")
        test.in(x).in(w).out(linear({x, w}));
      else if (name == "linear_dgrad")
        test.in(dy).in(w).out(differentiate(linear, {x, w}, 0, dy));
      else
        test.in(dy).in(x).out(differentiate(linear, {x, w}, 1, dy));
      if (scratch)
        test.scratch(scratch);
      test.check();
    }
  }
}

/// x plus a table whose elements repeat, from the start of each document if
/// there are any.
Tensor addTable(const std::vector<Tensor> &in, size_t period,
                const Tensor *starts) {
  uint64_t columns = in[0].columns();
  return map(in[0], [&](size_t i) {
    size_t element = i % period;
    if (starts)
      element -= static_cast<size_t>(starts->values[i / columns]) * columns;
    return in[0].values[i] + in[1].values[element];
  });
}

void testTable(const std::string &name) {
  Tensor x = randomTensor({3, 4, 5}, 37), dy = randomTensor(x.dims, 38);
  bool bias = name == "add_bias" || name == "bias_grad";
  // The table has rows that no position uses.
  Tensor table = randomTensor(bias ? Dims{5} : Dims{6, 5}, 39);
  Tensor starts = documents(3, 4);
  for (const Tensor *given : {static_cast<const Tensor *>(nullptr),
                              const_cast<const Tensor *>(&starts)}) {
    if (given && bias)
      continue;
    auto forward = [&](const std::vector<Tensor> &in) {
      return addTable(in, bias ? 5 : 20, given);
    };
    KernelCase test(name);
    if (name == "bias_grad" || name == "positions_grad")
      test.in(dy).out(differentiate(forward, {x, table}, 1, dy));
    else
      test.in(x).in(table).out(forward({x, table}));
    if (given)
      test.in(starts, pb::I32);
    test.check();
  }
}

void testDocumentStarts() {
  // HostPlan's separator is 3: at the start, at the end, and in a row.
  Tensor tokens({3, 6}), starts({3, 6});
  tokens.values = {3, 1, 2, 3, 5, 3, 1, 3, 3, 3, 0, 2, 0, 0, 0, 0, 0, 0};
  starts.values = {0, 1, 1, 1, 4, 4, 0, 0, 2, 3, 4, 4, 0, 0, 0, 0, 0, 0};
  KernelCase("document_starts")
      .in(tokens, pb::I32)
      .out(starts, pb::I32)
      .integer("separator", 3)
      .check();
}

} // namespace

const KernelCases &gtp::test::linearCases() {
  static const KernelCases cases = {
      {"add_bias", [] { testTable("add_bias"); }},
      {"add_positions", [] { testTable("add_positions"); }},
      {"bias_grad", [] { testTable("bias_grad"); }},
      {"document_starts", testDocumentStarts},
      {"linear", [] { testLinear("linear"); }},
      {"linear_dgrad", [] { testLinear("linear_dgrad"); }},
      {"linear_wgrad", [] { testLinear("linear_wgrad"); }},
      {"positions_grad", [] { testTable("positions_grad"); }},
  };
  return cases;
}
