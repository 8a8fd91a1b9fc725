//===- FusedKernels.cpp - Kernels that do the work of several -------------===//
//
// What `gtp-fuse` forms. The checker interprets a fused kernel as its parts,
// the host runs them one after the other, unless they round only once, and
// other backends make one pass over memory of them.
//
//===----------------------------------------------------------------------===//

#include "KernelSpecs.h"

using namespace gtp::plan;
using namespace gtp::plan::specs;

/// A sum of two and its norm.
static KernelSpec addNorm(std::string_view name, std::string_view norm,
                          std::vector<AttributeSpec> attributes,
                          std::string_view meaning) {
  return {name,
          1,
          {strided(read("a")), strided(read("b")), weight("weight"),
           use(strided(write("sum"))), strided(write("y"))},
          std::move(attributes),
          Contribution::None,
          SumsOver::Nothing,
          true,
          meaning,
          {},
          {},
          false,
          {},
          {{"add", {0, 1, 3}}, {norm, {3, 2, 4}}}};
}

/// The gradient of a norm, added to what else its input's gradient consists of.
static KernelSpec normGradAdd(std::string_view name, std::string_view gradient,
                              std::vector<AttributeSpec> attributes,
                              std::string_view meaning) {
  return {name,
          1,
          {cotangent(strided(read("dy"))), use(strided(read("x"))),
           weight("weight"), strided(read("residual")), strided(write("dx")),
           variadic(0, 1, specs::gradient("dweight"))},
          std::move(attributes),
          Contribution::Produces,
          SumsOver::Tokens,
          true,
          meaning,
          {},
          {},
          false,
          {},
          {{gradient, {0, 1, 2, 4, 5}}, {"add", {3, 4, 4}}}};
}

std::vector<KernelSpec> gtp::plan::fusedKernels() {
  const std::vector<AttributeSpec> rms = {{"eps", Float},
                                          {"unit_offset", Int, true}};
  const std::vector<AttributeSpec> layer = {{"eps", Float}};
  return {
      addNorm(
          "add_layer_norm", "layer_norm", layer,
          "sum = add of a and b; y = layer_norm of sum, which is read as it "
          "is stored."),
      addNorm(
          "add_rms_norm", "rms_norm", rms,
          "sum = add of a and b; y = rms_norm of sum, which is read as it is "
          "stored."),
      {"bias_gelu",
       1,
       {slopeOne(strided(read("x"))), use(weight("bias")),
        strided(write("sum")), strided(write("y"))},
       {{"approximate", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "sum = add_bias of x and bias; y = gelu of sum, which is read as it is "
       "stored.",
       {},
       {},
       false,
       {},
       {{"add_bias", {0, 1, 2}}, {"gelu", {2, 3}}}},
      {"cross_entropy_in_place",
       1,
       {strided(update("logits")), read("labels"), read("count"), read("dloss"),
        accumulable(write("loss"))},
       {{"sequence_mean", Int, true}},
       Contribution::None,
       SumsOver::Tokens,
       true,
       "loss = cross_entropy of logits, labels and count, then "
       "cross_entropy_grad of these and dloss in the place of logits, in their "
       "type.",
       {},
       {},
       false,
       {},
       {{"cross_entropy", {0, 1, 2, 4}},
        {"cross_entropy_grad", {0, 1, 2, 3, 0}}}},
      normGradAdd(
          "layer_norm_grad_add", "layer_norm_grad", layer,
          "layer_norm_grad of dy, x and weight into dx and dweight, then "
          "dx = add of residual and dx, which is read as dx's type would "
          "store it."),
      {"linear_bias",
       1,
       {use(strided(read("x"))), weight("w"), use(weight("bias")),
        strided(write("y")), optionalScratch()},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x [.., K], w [N, K], bias [N], y [.., N] = x w^T + bias. Accumulation "
       "f32 (f64 for f64), to which the bias is added before the one rounding.",
       {},
       {},
       false,
       {},
       {{"linear", {0, 1, 3, 4}}, {"add_bias", {3, 2, 3}}},
       /*roundsOnce=*/true},
      normGradAdd(
          "rms_norm_grad_add", "rms_norm_grad", rms,
          "rms_norm_grad of dy, x and weight into dx and dweight, then "
          "dx = add of residual and dx, which is read as dx's type would "
          "store it."),
  };
}
