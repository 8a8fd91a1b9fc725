//===- KernelCases.h - Conformance cases of kernels, and references -------===//
//
// References are written from the registry's text, in double and without care
// for speed; gradients are finite differences of forward references.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_KERNELCASES_H
#define GTP_TEST_UNIT_RUNTIME_KERNELCASES_H

#include "KernelHarness.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gtp::test {

/// By the kernel's name in the registry.
using KernelCases = std::map<std::string, std::function<void()>>;

// One table a family; `KernelsTest.cpp` joins them.
const KernelCases &activationCases();
const KernelCases &attentionCases();
const KernelCases &elementwiseCases();
const KernelCases &fusedCases();
const KernelCases &linearCases();
const KernelCases &lossCases();
const KernelCases &normCases();
const KernelCases &optimizerCases();

using Forward = std::function<Tensor(const std::vector<Tensor> &)>;

/// d(sum(dy * forward(inputs))) / d(inputs[which]), by central differences.
Tensor differentiate(const Forward &forward, std::vector<Tensor> inputs,
                     size_t which, const Tensor &dy);

/// f of every index, in the shape of `x`.
Tensor map(const Tensor &x, const std::function<double(size_t)> &f);

Tensor scalar(double value);

/// Where documents of odd and even lengths, 1 among them, start; other ones in
/// each of `batch` sequences.
Tensor documents(uint64_t batch, uint64_t length);

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_KERNELCASES_H
