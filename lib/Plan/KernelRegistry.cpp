//===- KernelRegistry.cpp - The kernels that are not fused ----------------===//
//
// `meaning` is the specification that every backend implements and the
// conformance tests check. Shapes: `..` stands for any leading dimensions,
// which count as rows; a shape in two operands of a call is the same shape.
//
//===----------------------------------------------------------------------===//

#include "KernelSpecs.h"

using namespace gtp::plan;
using namespace gtp::plan::specs;

std::vector<KernelSpec> gtp::plan::plainKernels() {
  const std::vector<AttributeSpec> attention = {
      {"heads", Int},  {"kv_heads", Int},     {"scale", Float},
      {"causal", Int}, {"window", Int, true}, {"softcap", Float, true}};
  std::vector<AttributeSpec> attentionGrad = attention;
  attentionGrad.push_back({"fast", Int, true});
  const Spec master = role(Role::Master, update("master"));
  const Spec remainder = role(Role::Remainder, update("remainder"));
  const Spec reduced = role(Role::Gradient, read("grad"));
  const Spec hyper = role(Role::Hyper, read("hyper"));
  const Spec scale = role(Role::Scale, read("scale"));
  const Spec compute = variadic(0, 1, role(Role::Compute, write("compute")));

  return {
      {"adamw",
       2,
       {master, role(Role::State, update("m")), role(Role::State, update("v")),
        reduced, hyper, scale, compute},
       {{"decay", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "hyper f32[8] = lr, weight_decay, beta1, beta2, eps, 1-beta1^t, "
       "1-beta2^t, 0; scale f32[]; master, m, v f32 or all bf16, of one shape, "
       "grad a float type of that shape, in f32: g = scale*grad; m = beta1*m + "
       "(1-beta1)*g; v = beta2*v + (1-beta2)*g*g; w = master - "
       "lr*((m/(1-beta1^t)) / (sqrt(v/(1-beta2^t)) + eps) + "
       "decay*weight_decay*master); master = w. In bf16 m, v and master are "
       "rounded to nearest even where they are stored, and w is computed from "
       "m and v before that. compute, if given (master f32), = w rounded to "
       "nearest in its type, ties away from zero. If scale is NaN, master, m "
       "and v stay as they are and w = master. decay is 0 or 1."},
      {"adamw_split",
       1,
       {master, remainder, role(Role::State, update("m")),
        role(Role::State, update("v")), reduced, hyper, scale},
       {{"decay", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "adamw on f32 m and v and the f32 master whose bits are those of master "
       "bf16, 16 zeros behind, plus remainder i16 as a signed number; stored "
       "so "
       "that master is the nearest bf16, ties away from zero, and remainder "
       "the difference of the bits. A NaN is stored as the quiet one without "
       "payload."},
      {"add",
       1,
       {variadic(1, any, strided(read("inputs"))),
        strided(accumulable(write("out")))},
       {},
       Contribution::Merges,
       SumsOver::Nothing,
       true,
       "out = inputs[0] + inputs[1] + ... in that order, accumulated in f32 "
       "(f64 for f64) and rounded once; accumulate: out is the first term. All "
       "operands have one shape and one float type."},
      {"add_bias",
       1,
       {slopeOne(strided(read("x"))), use(weight("bias")), strided(write("y"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x, y [.., N], bias [N]: y = x + bias, in f32 (f64 for f64), rounded "
       "once."},
      {"add_positions",
       1,
       {slopeOne(strided(read("x"))), use(weight("table")), strided(write("y")),
        starts()},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x, y [B, T, H], table [P, H] with P >= T: y at token t = x + "
       "table[t], or table[t - starts[t]] with starts i32[B, T], of which each "
       "is in 0 .. t. In f32 (f64 for f64), rounded once."},
      {"attention",
       1,
       {strided(read("q")), strided(read("k")), strided(read("v")),
        strided(write("out")), write("lse"), scratch(), starts()},
       attention,
       Contribution::None,
       SumsOver::Nothing,
       true,
       "q, out [B, T, heads*d]; k, v [B, T, kv_heads*d]; lse f32[B, heads, T]; "
       "head h reads kv head h / (heads/kv_heads). s_ij = scale * q_i.k_j, for "
       "causal only j <= i, for window > 0 only j > i - window, with starts "
       "i32[B, T], each in 0 .. i, only j >= starts_i; softcap c > 0 makes "
       "c*tanh(s_ij/c) of s_ij; lse_i = log(sum_j exp(s_ij)); out_i = "
       "sum_j "
       "exp(s_ij - lse_i) * v_j. Accumulation f32 (f64 for f64)."},
      {"attention_grad",
       1,
       {strided(read("dout")), strided(read("q")), strided(read("k")),
        strided(read("v")), strided(read("out")), read("lse"),
        strided(write("dq")), strided(write("dk")), strided(write("dv")),
        scratch(), starts()},
       attentionGrad,
       Contribution::None,
       SumsOver::Nothing,
       true,
       "vector-Jacobian product of attention, shapes as there: p_ij = exp(s_ij "
       "- lse_i); dv_j = sum_i p_ij dout_i; ds_ij = p_ij (dout_i.v_j - "
       "dout_i.out_i), times 1 - (s_ij/c)^2 for softcap c > 0; dq_i = scale * "
       "sum_j ds_ij k_j; dk_j = scale * sum_i "
       "ds_ij q_i; dk and dv sum the query heads of their kv head in head "
       "order. "
       "Accumulation f32 (f64 for f64). fast 1: the sums may run in any order, "
       "which need not be the same in the next run.",
       {},
       {},
       false,
       "fast"},
      {"bias_grad",
       1,
       {cotangent(strided(read("dy"))), use(gradient("dbias"))},
       {},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "dy [.., N], dbias [N] = sum over rows of dy, in row order. "
       "Accumulation f32 (f64 for f64); accumulate adds before the one "
       "rounding."},
      {"cast",
       1,
       {strided(read("x")), strided(accumulable(write("y")))},
       {},
       Contribution::Merges,
       SumsOver::Nothing,
       true,
       "y = x rounded to nearest even in y's type; accumulate: y = y + x in "
       "f32 "
       "(f64 when either is f64), rounded once. One shape, float types."},
      {"clip_scale",
       1,
       {role(Role::SquaredNorm, read("sumsq")), write("norm"),
        role(Role::Scale, write("scale"))},
       {{"max_norm", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "sumsq f64[], norm and scale f32[]: norm = sqrt(sumsq) in f64, rounded "
       "once; scale = NaN if norm is not finite, else 1 if max_norm is 0, else "
       "min(1, max_norm / (norm + 1e-6)) in f32. A NaN makes the updates that "
       "read it change nothing."},
      {"concat",
       1,
       {variadic(1, any, strided(read("inputs"))), strided(write("out"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "each row of out is the same row of each input, one behind the other; "
       "inputs [.., Ki], out [.., sum Ki], one type.",
       {},
       {},
       true},
      {"count_labels",
       1,
       {read("labels"), write("out")},
       {{"sequences", Int, true}},
       Contribution::None,
       SumsOver::Tokens,
       true,
       "labels i32[..], out i64[]: how many labels are not -100; with "
       "sequences "
       "1, labels [.., T], how many rows of T have such a label."},
      {"cross_entropy",
       1,
       {strided(read("logits")), read("labels"), read("count"),
        accumulable(write("loss"))},
       {{"sequence_mean", Int, true}},
       Contribution::None,
       SumsOver::Tokens,
       true,
       "logits [.., V], labels i32[..], count i64[], loss f32[]: sum over rows "
       "whose label l is not -100, in row order, of log(sum_v exp(logits_v)) - "
       "logits_l, divided by max(1, count); with sequence_mean 1, labels [.., "
       "T], the sum of each sequence of T rows is divided by the number of its "
       "labels that are not -100 before they are added. Row terms f32, their "
       "sums f64, rounded once; accumulate adds in f32."},
      {"cross_entropy_grad",
       1,
       {strided(read("logits")), read("labels"), read("count"), read("dloss"),
        strided(write("dlogits"))},
       {{"sequence_mean", Int, true}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "dlogits [.., V] = dloss f32[] / max(1, count) * (softmax(logits) - "
       "onehot(label)) for rows whose label is not -100, else exactly 0; with "
       "sequence_mean 1 divided also by the number of such labels in the row's "
       "sequence. f32."},
      {"document_starts",
       1,
       {read("tokens"), write("starts")},
       {{"separator", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "tokens, starts i32[.., T], for each row: starts[t] = t for t = 0 and "
       "where tokens[t-1] is the separator, else starts[t-1]. The separator is "
       "the model's document_separator."},
      {"embedding",
       1,
       {use(read("ids")), weight("table"), strided(write("out"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "ids i32[..], table [V, H], out [.., H] = table[ids]."},
      {"embedding_grad",
       1,
       {cotangent(strided(read("dy"))), use(read("ids")), gradient("dtable")},
       {},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "dtable [V, H]: row v is the sum of the rows of dy [.., H] whose id is "
       "v, in row order, accumulation f32 (f64 for f64), rounded once; a row "
       "that "
       "no id names is 0, or unchanged under accumulate."},
      {"full",
       1,
       {strided(write("out"))},
       {{"value", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "every element of out = value, converted to its type.",
       "value"},
      {"gelu",
       1,
       {strided(read("x")), strided(write("y"))},
       {{"approximate", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape: y = x * P(x) with P(x) = (1 + erf(x/sqrt(2)))/2, or, if "
       "approximate, (1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3)))/2. In f32 (f64 "
       "for f64)."},
      {"gelu_grad",
       1,
       {strided(read("dy")), strided(read("x")), strided(write("dx"))},
       {{"approximate", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape: dx = dy * (P(x) + x*P'(x)), P as gelu. In f32 (f64 for "
       "f64)."},
      {"keep_first",
       1,
       {read("x"), write("y")},
       {{"axes_mask", Int}},
       Contribution::Merges,
       SumsOver::Nothing,
       true,
       "y = x on ranks whose coordinate is 0 on every axis of axes_mask (bit "
       "i: "
       "axis i of the mesh), else 0. One shape, one float or integer type; "
       "dense.",
       {},
       "axes_mask"},
      {"layer_norm",
       1,
       {use(strided(read("x"))), weight("weight"), strided(write("y"))},
       {{"eps", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x, y [.., G*D], weight [D]; for each group of D: y = (x - m) * r * "
       "weight, m = mean(x), r = 1/sqrt(mean((x - m)^2) + eps). In f32 (f64 "
       "for f64)."},
      {"layer_norm_grad",
       1,
       {cotangent(strided(read("dy"))), use(strided(read("x"))),
        weight("weight"), strided(write("dx")),
        variadic(0, 1, gradient("dweight"))},
       {{"eps", Float}},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "shapes as layer_norm; with n = (x - m)*r and h = dy*weight for each "
       "group: dx = r*(h - mean(h) - n*mean(h*n)); dweight [D] = sum over rows "
       "and groups, in that order, of dy * n. In f32 (f64 for f64)."},
      {"linear",
       1,
       {use(strided(read("x"))), weight("w"), strided(write("y")),
        optionalScratch()},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x [.., K], w [N, K], y [.., N] = x w^T. Accumulation f32 (f64 for "
       "f64)."},
      {"linear_dgrad",
       1,
       {cotangent(strided(read("dy"))), weight("w"), strided(write("dx")),
        optionalScratch()},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "dy [.., N], w [N, K], dx [.., K] = dy w. Accumulation f32 (f64 for "
       "f64)."},
      {"linear_wgrad",
       1,
       {cotangent(strided(read("dy"))), use(strided(read("x"))), gradient("dw"),
        optionalScratch()},
       {},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "dy [.., N], x [.., K], dw [N, K] = dy^T x, summed over rows. "
       "Accumulation f32 (f64 for f64); accumulate adds before the one "
       "rounding."},
      {"mul",
       1,
       {strided(read("a")), strided(read("b")), strided(write("y"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape and float type: y = a * b, in f32 (f64 for f64), rounded "
       "once."},
      {"positions_grad",
       1,
       {cotangent(strided(read("dy"))), use(gradient("dtable")), starts()},
       {},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "dy [B, T, H], dtable [P, H] with P >= T: row p is the sum of dy over "
       "tokens whose position, t or with starts as in add_positions t - "
       "starts[t], is p, in row order; 0 if there is none. Accumulation f32 "
       "(f64 for f64); accumulate adds before the one rounding and leaves rows "
       "of no token."},
      {"rms_norm",
       1,
       {use(strided(read("x"))), weight("weight"), strided(write("y"))},
       {{"eps", Float}, {"unit_offset", Int, true}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x, y [.., G*D], weight [D]; for each group of D: y = x * r * weight, r "
       "= 1/sqrt(mean(x*x) + eps); unit_offset 1: 1 + weight in its place. In "
       "f32 (f64 for f64)."},
      {"rms_norm_grad",
       1,
       {cotangent(strided(read("dy"))), use(strided(read("x"))),
        weight("weight"), strided(write("dx")),
        variadic(0, 1, gradient("dweight"))},
       {{"eps", Float}, {"unit_offset", Int, true}},
       Contribution::Produces,
       SumsOver::Tokens,
       true,
       "shapes as rms_norm; with h = dy*weight for each group: dx = r*h - "
       "x * r^3 * mean(h*x); dweight [D], if given, = sum over rows and "
       "groups, in that "
       "order, of dy * x * r; unit_offset as there. In f32 (f64 for f64)."},
      {"rope",
       1,
       {strided(read("x")), strided(write("y")), starts()},
       {{"head_dim", Int}, {"inverse", Int}, {"frequencies", Constant}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "x, y [B, T, heads*head_dim]; at position t, which is the index along "
       "T, less starts if there are starts as in add_positions, and for i < n, "
       "the number "
       "of frequencies, with a = t*frequencies[i] (f64), negated if inverse: "
       "y_i = x_i cos a - x_(i+n) sin a; y_(i+n) = x_(i+n) cos a + x_i sin a; "
       "y = x for the features of a head behind 2n. In f32 (f64 for f64)."},
      {"scale",
       1,
       {strided(read("x")), strided(write("y"))},
       {{"factor", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape and float type: y = factor * x, the factor rounded to f32 "
       "(f64 for f64), rounded once."},
      {"sgd",
       2,
       {master, reduced, hyper, scale, compute},
       {{"decay", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "hyper and scale as adamw; master f32 or bf16, grad a float type of "
       "that "
       "shape, in f32: master = master - lr*(scale*grad + "
       "decay*weight_decay*master), unchanged if scale is NaN; a bf16 master "
       "is "
       "rounded to nearest even; compute as adamw."},
      {"sgd_split",
       1,
       {master, remainder, reduced, read("hyper"), read("scale")},
       {{"decay", Int}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "sgd on a f32 master held as adamw_split holds it."},
      {"softcap",
       1,
       {strided(read("x")), strided(write("y"))},
       {{"cap", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape: y = cap * tanh(x/cap). In f32 (f64 for f64)."},
      {"softcap_grad",
       1,
       {strided(read("dy")), strided(read("x")), strided(write("dx"))},
       {{"cap", Float}},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape: dx = dy * (1 - tanh(x/cap)^2). In f32 (f64 for f64)."},
      {"sum_squares",
       1,
       {read("x"), write("out")},
       {},
       Contribution::None,
       SumsOver::Elements,
       true,
       "out f64[] = sum of x*x over all elements in order, in f64; dense."},
      {"swiglu",
       1,
       {strided(read("gate")), strided(read("up")), strided(write("y"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape: y = gate / (1 + exp(-gate)) * up. In f32 (f64 for f64)."},
      {"swiglu_grad",
       1,
       {strided(read("dy")), strided(read("gate")), strided(read("up")),
        strided(write("dgate")), strided(write("dup"))},
       {},
       Contribution::None,
       SumsOver::Nothing,
       true,
       "one shape; s = 1/(1 + exp(-gate)): dgate = dy * up * s * (1 + gate * "
       "(1 - s)); dup = dy * gate * s. In f32 (f64 for f64)."},
  };
}
