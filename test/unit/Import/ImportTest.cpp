//===- ImportTest.cpp - Numbers that the importer computes ----------------===//

#include "gtp/Import/Import.h"
#include "dialects/Tfm/TfmDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

static OwningOpRef<ModuleOp> import(StringRef text, MLIRContext &context) {
  return gtp::importConfig(text, "config.json", gtp::ImportOptions(), &context);
}

/// The frequencies of the first rotary op.
static SmallVector<double> frequencies(ModuleOp module) {
  SmallVector<double> result;
  module.walk([&](gtp::tfm::RopeOp op) {
    result.assign(op.getFrequencies().begin(), op.getFrequencies().end());
    return WalkResult::interrupt();
  });
  return result;
}

static std::string tinyWith(StringRef rope) {
  return (R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
    "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
    "initializer_range": 0.02, "num_key_value_heads": 1, )" +
          rope + "}")
      .str();
}

/// Equal but for two last bits of float32.
static void expectFloats(ArrayRef<double> found, ArrayRef<float> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2.4e-7 * expected[i])
        << "frequency " << i;
}

// The expected numbers are transformers' _compute_llama3_parameters, evaluated
// with every operation rounded to float32.
TEST(Rope, Llama3ScalingIsThatOfTransformers) {
  auto file =
      llvm::MemoryBuffer::getFile(GTP_CONFIGS "/llama-3.2-1b-instruct.json");
  ASSERT_TRUE(file);
  MLIRContext context;
  OwningOpRef<ModuleOp> module = import((*file)->getBuffer(), context);
  ASSERT_TRUE(module);
  expectFloats(
      frequencies(*module),
      {0x1.0000000p+0f,  0x1.53c38c0p-1f,  0x1.c2ef780p-2f,  0x1.2b3dc60p-2f,
       0x1.8d27600p-3f,  0x1.078d400p-3f,  0x1.5dc95a0p-4f,  0x1.d03cce0p-5f,
       0x1.3411900p-5f,  0x1.98de920p-6f,  0x1.0f53860p-6f,  0x1.681ada0p-7f,
       0x1.ddee9e0p-8f,  0x1.3d28040p-8f,  0x1.a4ee400p-9f,  0x1.524f360p-10f,
       0x1.c26c400p-12f, 0x1.9731ee0p-14f, 0x1.46831a0p-16f, 0x1.b159020p-17f,
       0x1.1f91f00p-17f, 0x1.7da9e80p-18f, 0x1.fa8b860p-19f, 0x1.5024d60p-19f,
       0x1.be21880p-20f, 0x1.280d960p-20f, 0x1.88ec200p-21f, 0x1.04be680p-21f,
       0x1.5a0f4e0p-22f, 0x1.cb4a9a0p-23f, 0x1.30c94e0p-23f, 0x1.9483600p-24f});
}

TEST(Rope, LinearScalingDividesEveryFrequency) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = import(
      tinyWith(
          R"("rope_theta": 16, "rope_scaling": {"type": "linear", "factor": 4})"),
      context);
  ASSERT_TRUE(module);
  expectFloats(frequencies(*module), {0.25f, 0.125f, 0.0625f, 0.03125f});
}

TEST(Rope, ParametersOfTransformers5AreRead) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = import(
      tinyWith(
          R"("rope_parameters": {"rope_type": "default", "rope_theta": 16})"),
      context);
  ASSERT_TRUE(module);
  expectFloats(frequencies(*module), {1.0f, 0.5f, 0.25f, 0.125f});
}

// Model flops: 6 a weight that tokens are multiplied with, and for attention 6
// a position seen, head and feature of a head, with causality.
TEST(ModelDescription, FlopsAreThoseOfTheProducts) {
  MLIRContext context;
  gtp::ImportOptions options;
  options.sequence = 16;
  options.microBatch = 2;
  options.dataRanks = 3;
  options.microbatches = 5;
  OwningOpRef<ModuleOp> module = gtp::importConfig(
      tinyWith(R"("rope_theta": 16)"), "config.json", options, &context);
  ASSERT_TRUE(module);
  auto model = (*module)->getAttrOfType<DictionaryAttr>(gtp::tfm::kModelAttr);
  ASSERT_TRUE(model);
  auto integer = [&](StringRef key) {
    return model.getAs<IntegerAttr>(key).getInt();
  };
  // q, k, v, o, gate, up, down of 8 x 8, and the head.
  constexpr double products = 7 * 64 + 64, attention = 17 * 8;
  constexpr double tokens = 16 * 2 * 3 * 5;
  EXPECT_EQ(model.getAs<FloatAttr>("flops_per_step").getValueAsDouble(),
            6 * (products + attention) * tokens);
  EXPECT_EQ(integer("parameters"), 7 * 64 + 2 * 64 + 3 * 8);
  EXPECT_EQ(integer("global_batch"), 30);
  EXPECT_EQ(integer("microbatches"), 5);
}
