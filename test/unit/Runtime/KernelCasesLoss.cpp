//===- KernelCasesLoss.cpp - Embedding and loss ---------------------------===//

#include "KernelCases.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

void testEmbedding(bool gradient) {
  Tensor table = randomTensor({7, 5}, 15), dy = randomTensor({2, 4, 5}, 16);
  Tensor ids({2, 4});
  ids.values = {0, 6, 3, 3, 3, 6, 1, 0};
  auto forward = [&](const std::vector<Tensor> &in) {
    Tensor out({2, 4, 5});
    for (uint64_t row = 0; row < 8; ++row)
      for (uint64_t i = 0; i < 5; ++i)
        out.at(row, i) = in[0].at(static_cast<uint64_t>(ids.values[row]), i);
    return out;
  };
  if (!gradient)
    KernelCase("embedding")
        .in(ids, pb::I32)
        .in(table)
        .out(forward({table}))
        .tolerance(0)
        .check();
  else
    KernelCase("embedding_grad")
        .in(dy)
        .in(ids, pb::I32)
        .out(differentiate(forward, {table}, 0, dy))
        .check();
}

void testCrossEntropy(bool gradient) {
  Tensor logits = randomTensor({2, 3, 11}, 17), labels({2, 3});
  for (double &value : logits.values)
    value *= 30;
  for (const std::vector<double> &choice :
       {std::vector<double>{0, 10, -100, 4, 4, -100},
        std::vector<double>(6, -100)}) {
    labels.values = choice;
    for (double count : {0.0, 1.0, 9.0}) {
      auto forward = [&](const std::vector<Tensor> &in) {
        double total = 0;
        for (uint64_t row = 0; row < 6; ++row) {
          if (labels.values[row] == -100)
            continue;
          double sum = 0;
          for (uint64_t i = 0; i < 11; ++i)
            sum += std::exp(in[0].at(row, i));
          total += std::log(sum) -
                   in[0].at(row, static_cast<uint64_t>(labels.values[row]));
        }
        return scalar(total / std::max(1.0, count));
      };
      if (!gradient)
        KernelCase("cross_entropy")
            .in(logits)
            .in(labels, pb::I32)
            .in(scalar(count), pb::I64)
            .out(forward({logits}))
            .check();
      else
        KernelCase("cross_entropy_grad")
            .in(logits)
            .in(labels, pb::I32)
            .in(scalar(count), pb::I64)
            .in(scalar(0.5))
            .out(differentiate(forward, {logits}, 0, scalar(0.5)))
            .check();
    }
  }
}

/// The mean over sequences of their means: the second has no counted label.
void testSequenceMean(bool gradient) {
  Tensor logits = randomTensor({4, 3, 5}, 18), labels({4, 3});
  labels.values = {0, 4, -100, -100, -100, -100, 1, 2, 3, -100, 0, -100};
  const double counted[] = {2, 0, 3, 1};
  auto forward = [&](const std::vector<Tensor> &in) {
    double total = 0;
    for (uint64_t row = 0; row < 12; ++row) {
      if (labels.values[row] == -100)
        continue;
      double sum = 0;
      for (uint64_t i = 0; i < 5; ++i)
        sum += std::exp(in[0].at(row, i));
      total += (std::log(sum) -
                in[0].at(row, static_cast<uint64_t>(labels.values[row]))) /
               counted[row / 3];
    }
    return scalar(total / 3);
  };
  KernelCase test(gradient ? "cross_entropy_grad" : "cross_entropy");
  test.in(logits).in(labels, pb::I32).in(scalar(3), pb::I64);
  if (gradient)
    test.in(scalar(0.5)).out(differentiate(forward, {logits}, 0, scalar(0.5)));
  else
    test.out(forward({logits}));
  test.integer("sequence_mean", 1).check();
}

void testCountLabels() {
  Tensor labels({2, 2, 3});
  labels.values = {-100, 3, 0, -100, -100, -100, 1, 1, -100, 2, 0, -100};
  for (bool sequences : {false, true}) {
    KernelCase("count_labels")
        .in(labels, pb::I32)
        .out(scalar(sequences ? 3 : 6), pb::I64)
        .integer("sequences", sequences)
        .tolerance(0)
        .check();
  }
}

} // namespace

const KernelCases &gtp::test::lossCases() {
  static const KernelCases cases = {
      {"count_labels", testCountLabels},
      {"cross_entropy",
       [] {
         testCrossEntropy(false);
         testSequenceMean(false);
       }},
      {"cross_entropy_grad",
       [] {
         testCrossEntropy(true);
         testSequenceMean(true);
       }},
      {"embedding", [] { testEmbedding(false); }},
      {"embedding_grad", [] { testEmbedding(true); }},
  };
  return cases;
}
