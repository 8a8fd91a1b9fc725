//===- KernelShapes.cpp - Each kernel's rules on shapes and types ---------===//

#include "KernelShapes.h"
#include "KernelShapeCall.h"

#include <cmath>
#include <map>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::shapes;

namespace {

void embedding(Call &c, std::string_view table, std::string_view rows) {
  c.type("ids", pb::I32);
  c.floating(table);
  c.floating(rows);
  c.rank(table, 2);
  c.require(c.count("ids") == c.rows(rows), c.ref(rows),
            " must have a row for each of ", c.ref("ids"));
  c.require(c.last(rows) == c.dim(table, 1), c.ref(rows),
            " must have the row length of ", c.ref(table));
  c.require(c.vocabulary() <= c.dim(table, 0), c.ref(table),
            " must have a row for each of the vocabulary's ", c.vocabulary(),
            " ids");
}

void linear(Call &c, std::string_view x, std::string_view w,
            std::string_view y) {
  c.floating(x);
  c.floating(w);
  c.floating(y);
  c.rank(w, 2);
  c.sameRows(x, y);
  if (c.all("scratch").count)
    c.type("scratch", pb::U8);
  c.require(c.last(x) == c.dim(w, 1) && c.last(y) == c.dim(w, 0),
            "shapes must be [.., K], [N, K] and [.., N], found ", c.ref(x),
            ", ", c.ref(w), " and ", c.ref(y));
}

void norm(Call &c, std::string_view weight) {
  c.rank(weight, 1);
  c.require(c.last("x") % std::max<uint64_t>(c.last(weight), 1) == 0,
            c.ref("x"), " must have a last dimension that is a multiple of ",
            c.ref(weight));
  c.require(c.real("eps") >= 0, "eps must not be negative");
}

void rmsNorm(Call &c) {
  norm(c, "weight");
  c.require(c.integer("unit_offset") == 0 || c.integer("unit_offset") == 1,
            "unit_offset must be 0 or 1");
}

/// A norm's gradient, but for its attributes.
void normGrad(Call &c) {
  c.sameFloat({"x", "dy", "weight", "dx"});
  c.sameShape("x", "dy");
  c.sameShape("x", "dx");
  if (c.all("dweight").count) {
    c.floating("dweight");
    c.sameShape("weight", "dweight");
  }
}

void bias(Call &c, std::string_view x, std::string_view bias) {
  c.rank(bias, 1);
  c.require(c.last(x) == c.last(bias), c.ref(bias),
            " must have an element for each column of ", c.ref(x));
}

/// The optional operand `starts` has an index for each token of `x`.
void starts(Call &c, std::string_view x) {
  if (!c.all("starts").count)
    return;
  c.type("starts", pb::I32);
  c.rank("starts", 2);
  c.require(c.dim("starts", 0) == c.dim(x, 0) &&
                c.dim("starts", 1) == c.dim(x, 1),
            c.ref("starts"), " must be [batch, sequence] of ", c.ref(x));
}

void documentStarts(Call &c) {
  c.type("tokens", pb::I32);
  c.type("starts", pb::I32);
  c.sameShape("tokens", "starts");
  int64_t separator = c.integer("separator");
  const pb::Model &model = c.model();
  c.require(model.has_document_separator(),
            "the model has no document_separator, expected ", separator);
  c.require(separator == int64_t(model.document_separator()),
            "separator must be the model's document_separator ",
            model.document_separator(), ", found ", separator);
}

void positions(Call &c, std::string_view x, std::string_view table) {
  c.rank(x, 3);
  starts(c, x);
  c.rank(table, 2);
  c.require(c.last(x) == c.last(table), c.ref(table),
            " must have the row length of ", c.ref(x));
  c.require(c.dim(x, 1) <= c.dim(table, 0), c.ref(table),
            " must have a row for each position of ", c.ref(x));
}

/// Operands of one shape and float type.
void elementwise(Call &c, std::initializer_list<std::string_view> names) {
  c.sameFloat(names);
  for (std::string_view name : names)
    c.sameShape(*names.begin(), name);
}

void gelu(Call &c) {
  c.require(c.integer("approximate") == 0 || c.integer("approximate") == 1,
            "approximate must be 0 or 1");
}

void rope(Call &c) {
  c.sameFloat({"x", "y"});
  c.rank("x", 3);
  starts(c, "x");
  c.sameShape("x", "y");
  int64_t head = c.integer("head_dim");
  c.require(head > 0 && head % 2 == 0,
            "head_dim must be positive and even, found ", head);
  c.require(head > 0 && c.last("x") % static_cast<uint64_t>(head) == 0,
            c.ref("x"), " must hold whole heads of ", head);
  c.require(c.integer("inverse") == 0 || c.integer("inverse") == 1,
            "inverse must be 0 or 1");
  const pb::FloatList *frequencies = c.constant("frequencies");
  c.require(frequencies && frequencies->values_size() >= 1 &&
                frequencies->values_size() <= head / 2,
            "frequencies must have 1 to head_dim/2 values");
  if (frequencies)
    for (double value : frequencies->values())
      c.require(std::isfinite(value), "frequencies must be finite");
}

/// The shapes that attention and its gradient share: `q` like [B, T, heads*d].
void attention(Call &c) {
  for (std::string_view name : {"q", "k", "v", "out"})
    c.rank(name, 3);
  c.sameShape("q", "out");
  c.sameShape("k", "v");
  c.require(c.dim("q", 0) == c.dim("k", 0) && c.dim("q", 1) == c.dim("k", 1),
            c.ref("q"), " and ", c.ref("k"),
            " must agree in their first two dimensions");
  int64_t heads = c.integer("heads"), kvHeads = c.integer("kv_heads");
  c.require(kvHeads > 0 && heads > 0 && heads % kvHeads == 0,
            "heads must be a positive multiple of kv_heads, found ", heads,
            " and ", kvHeads);
  if (heads <= 0 || kvHeads <= 0)
    return;
  uint64_t h = static_cast<uint64_t>(heads), g = static_cast<uint64_t>(kvHeads);
  c.require(c.last("q") % h == 0 && c.last("k") % g == 0 &&
                c.last("q") / h == c.last("k") / g,
            c.ref("q"), " and ", c.ref("k"),
            " must hold whole heads of one size");
  c.type("lse", pb::F32);
  c.rank("lse", 3);
  c.require(c.dim("lse", 0) == c.dim("q", 0) && c.dim("lse", 1) == h &&
                c.dim("lse", 2) == c.dim("q", 1),
            c.ref("lse"), " must be [batch, heads, sequence] of ", c.ref("q"));
  c.type("scratch", pb::U8);
  c.require(c.integer("causal") == 0 || c.integer("causal") == 1,
            "causal must be 0 or 1");
  c.require(c.integer("window") == 0 ||
                (c.integer("window") > 0 && c.integer("causal") == 1),
            "window must be 0, or positive where causal is 1, found ",
            c.integer("window"));
  c.require(c.real("softcap") >= 0, "softcap must not be negative");
  starts(c, "q");
  c.require(!c.all("starts").count || c.integer("causal") == 1,
            "causal must be 1 where there are starts");
}

/// Labels that an attribute takes as sequences.
void sequences(Call &c, std::string_view attribute) {
  int64_t value = c.integer(attribute);
  c.require(value == 0 || value == 1, "the attribute must be 0 or 1, found ",
            value);
  c.require(value == 0 || c.at("labels").dims_size() >= 1, c.ref("labels"),
            " must have a dimension along the sequence");
}

void crossEntropy(Call &c) {
  sequences(c, "sequence_mean");
  c.floating("logits");
  c.type("labels", pb::I32);
  c.scalar("count", pb::I64);
  c.require(c.count("labels") == c.rows("logits"), c.ref("labels"),
            " must have a label for each row of ", c.ref("logits"));
  c.require(c.vocabulary() <= c.last("logits"), c.ref("logits"),
            " must have a column for each of the "
            "vocabulary's ",
            c.vocabulary(), " ids");
}

/// What all updates share.
void update(Call &c) {
  c.floating("grad");
  c.sameShape("master", "grad");
  c.type("hyper", pb::F32);
  c.require(c.count("hyper") == 8, c.ref("hyper"), " must have 8 elements");
  c.scalar("scale", pb::F32);
  c.require(c.integer("decay") == 0 || c.integer("decay") == 1,
            "decay must be 0 or 1");
}

void optimizer(Call &c) {
  update(c);
  pb::DType type = c.at("master").dtype();
  c.require(type == pb::F32 || type == pb::BF16, c.ref("master"),
            " must be f32 or bf16");
  if (c.all("compute").count) {
    c.type("master", pb::F32);
    c.floating("compute");
    c.sameShape("master", "compute");
  }
}

/// A master in two halves.
void splitOptimizer(Call &c) {
  update(c);
  c.type("master", pb::BF16);
  c.type("remainder", pb::I16);
  c.sameShape("master", "remainder");
}

/// First and second moments, of the type given.
void moments(Call &c, pb::DType type) {
  for (std::string_view name : {"m", "v"}) {
    c.type(name, type);
    c.sameShape("master", name);
  }
}

void sum(Call &c) {
  OperandRange inputs = c.all("inputs");
  const pb::Operand &out = c.at("out");
  c.floating("out");
  for (int i = inputs.first; i < inputs.first + inputs.count; ++i) {
    c.require(c.at(i).dtype() == out.dtype(),
              "every input must have the type of ", c.ref("out"));
    c.require(Call::sameDims(c.at(i), out),
              "every input must have the shape of ", c.ref("out"));
  }
}

void concat(Call &c) {
  OperandRange inputs = c.all("inputs");
  const pb::Operand &out = c.at("out");
  uint64_t rows = c.rows("out");
  std::optional<uint64_t> columns = 0;
  for (int i = inputs.first; i < inputs.first + inputs.count; ++i) {
    const pb::Operand &input = c.at(i);
    c.require(input.dtype() == out.dtype(),
              "every input must have the type of ", c.ref("out"));
    c.require(elementCount(input).value_or(0) / rowElements(input) == rows,
              "every input must have the rows of ", c.ref("out"));
    if (columns)
      columns = checkedAdd(*columns, rowElements(input));
  }
  c.require(columns == c.last("out"), c.ref("out"),
            " must have as many columns as its inputs together");
}

using Rules = void (*)(Call &);

const std::map<std::string_view, Rules> &rules() {
  static const std::map<std::string_view, Rules> table = {
      {"adamw",
       [](Call &c) {
         optimizer(c);
         moments(c, c.at("master").dtype());
       }},
      {"adamw_split",
       [](Call &c) {
         splitOptimizer(c);
         moments(c, pb::F32);
       }},
      {"add", sum},
      {"add_bias",
       [](Call &c) {
         c.sameFloat({"x", "bias", "y"});
         c.sameShape("x", "y");
         bias(c, "x", "bias");
       }},
      {"add_positions",
       [](Call &c) {
         c.sameFloat({"x", "table", "y"});
         c.sameShape("x", "y");
         positions(c, "x", "table");
       }},
      {"attention",
       [](Call &c) {
         c.sameFloat({"q", "k", "v", "out"});
         attention(c);
       }},
      {"attention_grad",
       [](Call &c) {
         c.sameFloat({"q", "k", "v", "out", "dout", "dq", "dk", "dv"});
         attention(c);
         c.require(c.integer("fast") == 0 || c.integer("fast") == 1,
                   "fast must be 0 or 1");
         c.sameShape("out", "dout");
         c.sameShape("q", "dq");
         c.sameShape("k", "dk");
         c.sameShape("v", "dv");
       }},
      {"bias_grad",
       [](Call &c) {
         c.floating("dy");
         c.floating("dbias");
         bias(c, "dy", "dbias");
       }},
      {"cast",
       [](Call &c) {
         c.floating("x");
         c.floating("y");
         c.sameShape("x", "y");
       }},
      {"clip_scale",
       [](Call &c) {
         c.scalar("sumsq", pb::F64);
         c.scalar("norm", pb::F32);
         c.scalar("scale", pb::F32);
         c.require(c.real("max_norm") >= 0, "max_norm must not be negative");
       }},
      {"concat", concat},
      {"count_labels",
       [](Call &c) {
         c.type("labels", pb::I32);
         sequences(c, "sequences");
         c.scalar("out", pb::I64);
       }},
      {"cross_entropy",
       [](Call &c) {
         crossEntropy(c);
         c.scalar("loss", pb::F32);
       }},
      {"cross_entropy_grad",
       [](Call &c) {
         crossEntropy(c);
         c.scalar("dloss", pb::F32);
         c.floating("dlogits");
         c.sameShape("logits", "dlogits");
       }},
      {"document_starts", documentStarts},
      {"embedding",
       [](Call &c) {
         c.sameFloat({"table", "out"});
         embedding(c, "table", "out");
       }},
      {"embedding_grad", [](Call &c) { embedding(c, "dtable", "dy"); }},
      {"full", [](Call &) {}},
      {"gelu",
       [](Call &c) {
         elementwise(c, {"x", "y"});
         gelu(c);
       }},
      {"gelu_grad",
       [](Call &c) {
         elementwise(c, {"x", "dy", "dx"});
         gelu(c);
       }},
      {"keep_first",
       [](Call &c) {
         c.require(c.at("x").dtype() == c.at("y").dtype(), c.ref("y"),
                   " must have the type of ", c.ref("x"));
         c.sameShape("x", "y");
         c.require(c.integer("axes_mask") >= 0,
                   "axes_mask must not be negative");
       }},
      {"layer_norm",
       [](Call &c) {
         c.sameFloat({"x", "weight", "y"});
         c.sameShape("x", "y");
         norm(c, "weight");
       }},
      {"layer_norm_grad",
       [](Call &c) {
         normGrad(c);
         norm(c, "weight");
       }},
      {"linear",
       [](Call &c) {
         c.sameFloat({"x", "w"});
         linear(c, "x", "w", "y");
       }},
      {"linear_dgrad",
       [](Call &c) {
         c.sameFloat({"dy", "w"});
         linear(c, "dx", "w", "dy");
       }},
      {"linear_wgrad",
       [](Call &c) {
         c.sameFloat({"dy", "x"});
         linear(c, "x", "dw", "dy");
       }},
      {"mul", [](Call &c) { elementwise(c, {"a", "b", "y"}); }},
      {"positions_grad",
       [](Call &c) {
         c.floating("dy");
         c.floating("dtable");
         positions(c, "dy", "dtable");
       }},
      {"rms_norm",
       [](Call &c) {
         c.sameFloat({"x", "weight", "y"});
         c.sameShape("x", "y");
         rmsNorm(c);
       }},
      {"rms_norm_grad",
       [](Call &c) {
         normGrad(c);
         rmsNorm(c);
       }},
      {"rope", rope},
      {"scale", [](Call &c) { elementwise(c, {"x", "y"}); }},
      {"sgd", optimizer},
      {"sgd_split", splitOptimizer},
      {"softcap",
       [](Call &c) {
         elementwise(c, {"x", "y"});
         c.require(c.real("cap") > 0, "cap must be positive");
       }},
      {"softcap_grad",
       [](Call &c) {
         elementwise(c, {"x", "dy", "dx"});
         c.require(c.real("cap") > 0, "cap must be positive");
       }},
      {"sum_squares",
       [](Call &c) {
         c.floating("x");
         c.scalar("out", pb::F64);
       }},
      {"swiglu",
       [](Call &c) {
         c.sameFloat({"gate", "up", "y"});
         c.sameShape("gate", "up");
         c.sameShape("gate", "y");
       }},
      {"swiglu_grad",
       [](Call &c) {
         c.sameFloat({"gate", "up", "dy", "dgate", "dup"});
         for (std::string_view name : {"up", "dy", "dgate", "dup"})
           c.sameShape("gate", name);
       }},
  };
  return table;
}

} // namespace

Status gtp::plan::verifyKernelShapes(const pb::Plan &plan,
                                     const pb::Kernel &kernel,
                                     const KernelSpec &spec) {
  for (const KernelPart &part : spec.parts)
    GTP_RETURN_IF_ERROR(verifyKernelShapes(plan, partCall(spec, kernel, part),
                                           *lookupKernel(part.kernel))
                            .in("kernel " + std::string(spec.name)));
  if (!spec.parts.empty())
    return Status::ok();
  Call call(plan, kernel, spec);
  auto it = rules().find(spec.name);
  if (it == rules().end())
    return Status::error("kernel " + std::string(spec.name) +
                         " has no shape rule");
  it->second(call);
  return call.take();
}
