//===- KernelRegistryTest.cpp ---------------------------------------------===//

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::plan;

namespace {

/// A plan of strings and constants, and calls that use them.
struct Calls {
  pb::Plan plan;
  pb::Kernel kernel;

  explicit Calls(const std::string &name) {
    plan.add_strings("");
    plan.mutable_model()->set_vocabulary(16);
    kernel.set_name(intern(name));
    kernel.set_version(lookupKernel(name)->version);
  }
  uint32_t intern(const std::string &text) {
    plan.add_strings(text);
    return static_cast<uint32_t>(plan.strings_size() - 1);
  }
  Calls &operand(pb::DType type, std::vector<uint64_t> dims,
                 uint64_t pitch = 0) {
    pb::Operand *operand = kernel.add_operands();
    operand->set_dtype(type);
    operand->mutable_dims()->Add(dims.begin(), dims.end());
    operand->set_pitch(pitch);
    return *this;
  }
  Calls &integer(const std::string &name, int64_t value) {
    pb::Attribute *attribute = kernel.add_attributes();
    attribute->set_name(intern(name));
    attribute->set_i(value);
    return *this;
  }
  Calls &real(const std::string &name, double value) {
    pb::Attribute *attribute = kernel.add_attributes();
    attribute->set_name(intern(name));
    attribute->set_f(value);
    return *this;
  }
  std::string verify() const {
    return verifyKernelCall(plan, kernel).message();
  }
};

Calls linear() {
  Calls calls("linear");
  calls.operand(pb::F32, {2, 4, 8})
      .operand(pb::F32, {6, 8})
      .operand(pb::F32, {2, 4, 6}, 9);
  return calls;
}

} // namespace

TEST(KernelRegistry, IsSortedAndComplete) {
  std::string_view previous;
  for (const KernelSpec &spec : kernelRegistry()) {
    EXPECT_LT(previous, spec.name);
    previous = spec.name;
    EXPECT_EQ(lookupKernel(spec.name), &spec);
    EXPECT_FALSE(spec.meaning.empty()) << spec.name;
    EXPECT_GE(spec.version, 1u);
    int variadic = 0;
    for (const OperandSpec &operand : spec.operands)
      variadic += operand.variadic;
    EXPECT_LE(variadic, 1) << spec.name;
    EXPECT_LE(weightCount(spec), 2u) << spec.name;
    // Which of two parameters a weight is of, the checker takes from the parts.
    if (weightCount(spec) > 1) {
      EXPECT_FALSE(spec.parts.empty()) << spec.name;
    }
  }
  EXPECT_EQ(lookupKernel("conv"), nullptr);
}

TEST(KernelRegistry, EveryKernelHasAShapeRule) {
  for (const KernelSpec &spec : kernelRegistry()) {
    Calls calls{std::string(spec.name)};
    for (const OperandSpec &operand : spec.operands)
      for (uint32_t i = 0; i < (operand.variadic ? operand.minCount : 1); ++i)
        calls.operand(pb::F32, {1});
    for (const AttributeSpec &attribute : spec.attributes) {
      if (attribute.kind == AttributeSpec::Kind::Float)
        calls.real(std::string(attribute.name), 1);
      else if (attribute.kind == AttributeSpec::Kind::Int)
        calls.integer(std::string(attribute.name), 1);
      else {
        pb::Attribute *constant = calls.kernel.add_attributes();
        constant->set_name(calls.intern(std::string(attribute.name)));
        constant->set_constant(0);
        calls.plan.add_constants();
      }
    }
    EXPECT_EQ(calls.verify().find("no shape rule"), std::string::npos)
        << spec.name;
  }
}

/// Operands of fused kernels are touched as their parts touch them: read before
/// they are written if they are read, and with no more freedom.
TEST(KernelRegistry, FusedKernelsTouchWhatTheirPartsTouch) {
  for (const KernelSpec &spec : kernelRegistry()) {
    std::vector<bool> reads(spec.operands.size()), writes(reads);
    for (const KernelPart &part : spec.parts) {
      const KernelSpec *kernel = lookupKernel(part.kernel);
      ASSERT_TRUE(kernel) << part.kernel;
      EXPECT_TRUE(kernel->parts.empty()) << part.kernel;
      std::vector<bool> written(writes);
      for (size_t i = 0; i < part.operands.size(); ++i) {
        unsigned index = part.operands[i];
        ASSERT_LT(index, spec.operands.size());
        const OperandSpec &whole = spec.operands[index];
        const OperandSpec *own = operandSpec(*kernel, i, part.operands.size());
        ASSERT_TRUE(own) << spec.name << " " << part.kernel;
        std::string where = std::string(spec.name) + " " +
                            std::string(part.kernel) + " operand " +
                            std::string(own->name);
        if (own->access != Access::Write && !writes[index])
          reads[index] = true;
        if (own->access != Access::Read)
          written[index] = true;
        EXPECT_LE(whole.strided, own->strided) << where;
        EXPECT_EQ(whole.role == Role::Weight, own->role == Role::Weight)
            << where;
        EXPECT_EQ(whole.role == Role::Gradient, own->role == Role::Gradient)
            << where;
        if (own->access == Access::Write)
          EXPECT_LE(whole.accumulable, own->accumulable) << where;
      }
      writes = written;
      for (const AttributeSpec &attribute : kernel->attributes)
        EXPECT_TRUE(std::any_of(spec.attributes.begin(), spec.attributes.end(),
                                [&](const AttributeSpec &known) {
                                  return known.name == attribute.name &&
                                         known.kind == attribute.kind &&
                                         known.optional == attribute.optional;
                                }))
            << spec.name << " lacks " << attribute.name;
    }
    for (size_t i = 0; i < spec.operands.size() && !spec.parts.empty(); ++i) {
      Access access = reads[i] && writes[i] ? Access::ReadWrite
                      : writes[i]           ? Access::Write
                                            : Access::Read;
      EXPECT_EQ(spec.operands[i].access, access)
          << spec.name << " " << spec.operands[i].name;
    }
  }
}

TEST(KernelRegistry, VariadicOperandsExpand) {
  const KernelSpec *adamw = lookupKernel("adamw");
  EXPECT_EQ(operandSpec(*adamw, 6, 7)->name, "compute");
  EXPECT_EQ(operandSpec(*adamw, 5, 6)->name, "scale");
  EXPECT_EQ(operandSpec(*adamw, 0, 5), nullptr);
  EXPECT_EQ(operandSpec(*adamw, 0, 8), nullptr);
  const KernelSpec *add = lookupKernel("add");
  EXPECT_EQ(operandSpec(*add, 2, 4)->name, "inputs");
  EXPECT_EQ(operandSpec(*add, 3, 4)->name, "out");
  EXPECT_EQ(operandSpec(*add, 0, 1), nullptr);
}

TEST(KernelCall, AcceptsAStridedLinear) { EXPECT_EQ(linear().verify(), ""); }

TEST(KernelCall, AProductMayHaveScratch) {
  EXPECT_EQ(linear().operand(pb::U8, {256}).verify(), "");
  EXPECT_NE(linear().operand(pb::F32, {64}).verify().find("must be u8"),
            std::string::npos);
  EXPECT_NE(linear()
                .operand(pb::U8, {256})
                .operand(pb::U8, {256})
                .verify()
                .find("5 operands"),
            std::string::npos);
}

TEST(KernelCall, RefusesWhatDoesNotFit) {
  auto expect = [](auto &&change, const std::string &text) {
    Calls calls = linear();
    change(calls);
    EXPECT_NE(calls.verify().find(text), std::string::npos)
        << "found: " << calls.verify();
  };
  expect([](Calls &c) { c.kernel.mutable_operands(1)->set_dims(0, 7); },
         "shapes must be [.., K], [N, K] and [.., N]");
  expect([](Calls &c) { c.kernel.mutable_operands(0)->set_dims(0, 3); },
         "same number of rows");
  expect([](Calls &c) { c.kernel.mutable_operands(2)->set_pitch(5); },
         "pitch below its last dimension");
  expect([](Calls &c) { c.kernel.mutable_operands(1)->set_pitch(9); },
         "must be dense");
  expect([](Calls &c) { c.kernel.mutable_operands(1)->set_dtype(pb::BF16); },
         "must have the type of");
  expect([](Calls &c) { c.kernel.mutable_operands(0)->set_dtype(pb::U8); },
         "must be a float type");
  expect([](Calls &c) { c.kernel.mutable_operands(2)->set_accumulate(true); },
         "cannot accumulate");
  expect([](Calls &c) { c.kernel.mutable_operands()->RemoveLast(); },
         "2 operands");
  expect([](Calls &c) { c.kernel.set_version(2); }, "version 2");
  expect([](Calls &c) { c.kernel.set_name(99); }, "string 99 of");
  expect([](Calls &c) { c.kernel.set_name(c.intern("conv")); },
         "unknown kernel 'conv'");
  expect([](Calls &c) { c.real("eps", 1); }, "none of its attributes");
  expect(
      [](Calls &c) {
        c.kernel.mutable_operands(0)->set_dims(0, UINT64_MAX / 3);
      },
      "too large");
  expect([](Calls &c) { c.kernel.mutable_operands(0)->set_dims(0, 0); },
         "no elements");
  expect(
      [](Calls &c) {
        c.kernel.mutable_operands(2)->set_pitch(uint64_t(1) << 61);
      },
      "too large");
}

TEST(KernelCall, ChecksAttributes) {
  auto norm = [] {
    Calls calls("rms_norm");
    calls.operand(pb::F32, {3, 8})
        .operand(pb::F32, {4})
        .operand(pb::F32, {3, 8});
    return calls;
  };
  EXPECT_EQ(norm().real("eps", 1e-5).verify(), "");
  EXPECT_NE(norm().verify().find("lacks its attribute 'eps'"),
            std::string::npos);
  EXPECT_NE(norm().integer("eps", 1).verify().find("finite float"),
            std::string::npos);
  EXPECT_NE(norm().real("eps", 1).real("eps", 1).verify().find("twice"),
            std::string::npos);
  EXPECT_NE(norm().real("eps", NAN).verify().find("finite float"),
            std::string::npos);
  Calls calls = norm().real("eps", 0.5);
  EXPECT_EQ(floatAttribute(calls.plan, calls.kernel, "eps"), 0.5);
  EXPECT_EQ(intAttribute(calls.plan, calls.kernel, "eps", 7), 7);
}

TEST(KernelCall, AFusedCallFitsItsParts) {
  auto norm = [](uint64_t residual, pb::DType type, uint64_t weight) {
    Calls calls("rms_norm_grad_add");
    calls.operand(pb::F32, {3, 8})
        .operand(pb::F32, {3, 8})
        .operand(pb::F32, {weight})
        .operand(type, {3, residual})
        .operand(pb::F32, {3, 8});
    return calls.real("eps", 1e-5).verify();
  };
  EXPECT_EQ(norm(8, pb::F32, 4), "");
  EXPECT_NE(norm(7, pb::F32, 4)
                .find("kernel rms_norm_grad_add: kernel add: "
                      "every input must have the shape of 'out'"),
            std::string::npos);
  EXPECT_NE(norm(8, pb::BF16, 4).find("every input must have the type of"),
            std::string::npos);
  EXPECT_NE(norm(8, pb::F32, 3)
                .find("kernel rms_norm_grad_add: kernel "
                      "rms_norm_grad: 'x'"),
            std::string::npos);
}

TEST(KernelCall, ATableHoldsTheWholeVocabulary) {
  auto embedding = [](uint64_t rows) {
    Calls calls("embedding");
    calls.operand(pb::I32, {2, 3})
        .operand(pb::F32, {rows, 4})
        .operand(pb::F32, {2, 3, 4});
    return calls.verify();
  };
  EXPECT_EQ(embedding(16), "");
  EXPECT_NE(embedding(15).find("vocabulary's 16 ids"), std::string::npos);
}

TEST(KernelCall, AttentionShapesAgree) {
  auto attention = [](int64_t heads, int64_t kvHeads, uint64_t lseHeads) {
    Calls calls("attention");
    calls.operand(pb::F32, {2, 5, 16}, 32)
        .operand(pb::F32, {2, 5, 8}, 32)
        .operand(pb::F32, {2, 5, 8}, 32)
        .operand(pb::F32, {2, 5, 16})
        .operand(pb::F32, {2, lseHeads, 5})
        .operand(pb::U8, {100});
    calls.integer("heads", heads)
        .integer("kv_heads", kvHeads)
        .real("scale", 0.5)
        .integer("causal", 1);
    return calls.verify();
  };
  EXPECT_EQ(attention(4, 2, 4), "");
  EXPECT_NE(attention(4, 2, 2), "");
  EXPECT_NE(attention(4, 4, 4), "");
  EXPECT_NE(attention(4, 0, 4), "");
  EXPECT_NE(attention(-4, 2, 4), "");
  EXPECT_NE(attention(4, 3, 4), "");
}

TEST(KernelCall, StartsOfDocumentsFitTheirTokens) {
  auto positions = [](pb::DType type, std::vector<uint64_t> dims) {
    Calls calls("add_positions");
    calls.operand(pb::F32, {2, 5, 4})
        .operand(pb::F32, {6, 4})
        .operand(pb::F32, {2, 5, 4})
        .operand(type, std::move(dims));
    return calls.verify();
  };
  EXPECT_EQ(positions(pb::I32, {2, 5}), "");
  EXPECT_NE(positions(pb::I64, {2, 5}).find("must be i32"), std::string::npos);
  EXPECT_NE(positions(pb::I32, {5, 2}).find("[batch, sequence] of"),
            std::string::npos);
  EXPECT_NE(positions(pb::I32, {10}).find("2 dimensions"), std::string::npos);

  auto attention = [](int64_t causal) {
    Calls calls("attention");
    for (int i = 0; i < 4; ++i)
      calls.operand(pb::F32, {2, 5, 4});
    calls.operand(pb::F32, {2, 1, 5})
        .operand(pb::U8, {100})
        .operand(pb::I32, {2, 5});
    calls.integer("heads", 1)
        .integer("kv_heads", 1)
        .real("scale", 0.5)
        .integer("causal", causal);
    return calls.verify();
  };
  EXPECT_EQ(attention(1), "");
  EXPECT_NE(attention(0).find("causal must be 1"), std::string::npos);
}

TEST(KernelCall, TheSeparatorIsTheModels) {
  Calls calls("document_starts");
  calls.operand(pb::I32, {2, 5}).operand(pb::I32, {2, 5});
  calls.integer("separator", 7);
  EXPECT_NE(calls.verify().find("the model has no document_separator, "
                                "expected 7"),
            std::string::npos);
  calls.plan.mutable_model()->set_document_separator(6);
  EXPECT_NE(calls.verify().find("must be the model's document_separator 6, "
                                "found 7"),
            std::string::npos);
  calls.plan.mutable_model()->set_document_separator(7);
  EXPECT_EQ(calls.verify(), "");
}

TEST(Operand, ExtentCountsGapsBetweenRowsOnly) {
  pb::Operand operand;
  operand.set_dtype(pb::BF16);
  operand.add_dims(3);
  operand.add_dims(4);
  EXPECT_EQ(byteExtent(operand), 24u);
  operand.set_pitch(10);
  EXPECT_EQ(byteExtent(operand), (2 * 10 + 4) * 2u);
  EXPECT_FALSE(isDense(operand));
  operand.set_dims(0, 1);
  EXPECT_TRUE(isDense(operand));
  operand.clear_dims();
  EXPECT_EQ(byteExtent(operand), 2u);
  operand.add_dims(0);
  operand.add_dims(UINT64_MAX);
  operand.add_dims(UINT64_MAX);
  EXPECT_EQ(elementCount(operand), std::nullopt);
}
