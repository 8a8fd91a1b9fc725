//===- KernelCasesElementwise.cpp - Sums, casts, copies -------------------===//

#include "KernelCases.h"

using namespace gtp;
using namespace gtp::test;

namespace {

void testAdd() {
  for (pb::DType type : {pb::F32, pb::F64})
    for (size_t terms : {1, 2, 4}) {
      Tensor sum({3, 7});
      KernelCase test("add");
      for (size_t term = 0; term < terms; ++term) {
        Tensor x = randomTensor(sum.dims, 18 + term);
        sum = map(sum, [&](size_t i) { return sum.values[i] + x.values[i]; });
        test.in(x, type);
      }
      test.out(sum, type).check();
    }
}

void testCast() {
  Tensor x = randomTensor({3, 7}, 22);
  for (pb::DType from : {pb::F32, pb::F64})
    for (pb::DType to : {pb::F32, pb::F64})
      KernelCase("cast").in(x, from).out(x, to).tolerance(1e-7).check();
}

void testConcat() {
  Tensor a = randomTensor({2, 3, 4}, 23), b = randomTensor({2, 3, 1}, 24);
  Tensor out({2, 3, 9});
  for (uint64_t row = 0; row < 6; ++row)
    for (uint64_t i = 0; i < 9; ++i)
      out.at(row, i) = i < 4   ? a.at(row, i)
                       : i < 5 ? b.at(row, 0)
                               : a.at(row, i - 5);
  KernelCase("concat").in(a).in(b).in(a).out(out).tolerance(0).check();
}

void testFull() {
  KernelCase("full")
      .out(Tensor({3, 5}, 1.5))
      .real("value", 1.5)
      .tolerance(0)
      .check();
  KernelCase("full")
      .out(Tensor({}, -7), pb::I64)
      .real("value", -7)
      .tolerance(0)
      .check();
}

void testKeepFirst() {
  Tensor x = randomTensor({3, 5}, 25);
  for (int64_t mask : {0, 1, 2, 3}) {
    KernelCase test("keep_first");
    test.in(x).out(x).integer("axes_mask", mask);
    // Coordinates are (0, 0), (0, 1), (0, 2), (1, 0), ...
    std::vector<Tensor> results = test.runOn({{"dp", 2}, {"gtp", 3}});
    for (uint64_t rank = 0; rank < 6; ++rank) {
      bool first =
          (!(mask & 1) || rank / 3 == 0) && (!(mask & 2) || rank % 3 == 0);
      EXPECT_EQ(results[rank].values, first ? x.values : Tensor(x.dims).values)
          << "rank " << rank << ", mask " << mask;
    }
  }
}

} // namespace

const KernelCases &gtp::test::elementwiseCases() {
  static const KernelCases cases = {
      {"add", testAdd},
      {"cast", testCast},
      {"concat", testConcat},
      {"full", testFull},
      {"keep_first", testKeepFirst},
  };
  return cases;
}
