//===- TuningCacheTest.cpp ------------------------------------------------===//

#include "gtp-rt/TuningCache.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;
namespace pb = gtp::plan::pb;

static const TuningPlatform kHere = {"cuBLASLt 13.1.0", "NVIDIA H200"};

static TunedProduct tuned() {
  ProductAlgorithm algorithm;
  algorithm.values = {66, 20, 36, 1, 0, 1, 0, 0, 3};
  return {algorithm, 291000, 300125};
}

/// A cache of one product whose `key` holds `value`, at the top or in the
/// product or in its algorithm.
static std::string with(const std::string &key, const std::string &value) {
  std::string text =
      R"({"version": 1, "products": [{"library": "l", "gpu": "g", )"
      R"("product": "p", "ns": 1, "first_ns": 2, "algorithm": {"id": 1, )"
      R"("tile": 2, "stages": 3, "split_k": 4, "reduction": 0, "swizzle": 0, )"
      R"("custom": 0, "inner_shape": 0, "cluster_shape": 5}}]})";
  size_t at = text.find("\"" + key + "\": ");
  EXPECT_NE(at, std::string::npos) << key;
  at += key.size() + 4;
  size_t depth = 0, end = at;
  while (depth > 0 || (text[end] != ',' && text[end] != '}')) {
    depth += text[end] == '{' || text[end] == '[';
    depth -= text[end] == '}' || text[end] == ']';
    ++end;
  }
  return text.replace(at, end - at, value);
}

static std::string error(const std::string &text) {
  auto cache = TuningCache::parse(text);
  return cache.isOk() ? "" : cache.message();
}

TEST(TuningCache, TheKeySaysAllThatTheAlgorithmDependsOn) {
  ProductShape shape;
  shape.a = {pb::BF16, 4096, 6144, 6144, 256, true};
  shape.b = {pb::BF16, 4096, 4096, 4100, 8, false};
  shape.d = {pb::F32, 6144, 4096, 4096, 256, false};
  const std::string text = "bf16:4096x6144:6144:256:T bf16:4096x4096:4100:8 "
                           "f32:6144x4096:4096:256";
  EXPECT_EQ(shape.text(), text);
  shape.add = true;
  EXPECT_EQ(shape.text(), text + " add");
  shape.scratchBytes = 1 << 20;
  EXPECT_EQ(shape.text(), text + " add scratch:1048576");
  shape.biasAlignment = 16;
  EXPECT_EQ(shape.text(), text + " add scratch:1048576 bias:16");
}

TEST(TuningCache, WhatIsSavedIsRead) {
  TemporaryFolder folder;
  const std::string path = folder.path("a/b/tuning.json");
  auto cache = TuningCache::open(path);
  ASSERT_TRUE(cache.isOk()) << cache.message();
  EXPECT_EQ(cache->size(), 0u);
  cache->add(kHere, "p", tuned());
  cache->add(kHere, "q", {std::nullopt, 5, 6});
  Status saved = cache->save();
  ASSERT_TRUE(saved.isOk()) << saved.message();
  auto again = TuningCache::open(path);
  ASSERT_TRUE(again.isOk()) << again.message();
  EXPECT_EQ(again->size(), 2u);
  EXPECT_EQ(again->text(), cache->text());
  const TunedProduct *found = again->find(kHere, "p");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->algorithm == tuned().algorithm);
  EXPECT_EQ(found->ns, 291000u);
  EXPECT_EQ(found->firstNs, 300125u);
  ASSERT_TRUE(again->find(kHere, "q"));
  EXPECT_FALSE(again->find(kHere, "q")->algorithm);
}

TEST(TuningCache, OtherLibrariesAndGpusAreOtherEntries) {
  TuningCache cache;
  cache.add(kHere, "p", tuned());
  EXPECT_FALSE(cache.find({"cuBLASLt 13.2.0", kHere.gpu}, "p"));
  EXPECT_FALSE(cache.find({kHere.library, "NVIDIA H100"}, "p"));
  EXPECT_FALSE(cache.find(kHere, "q"));
  cache.add({"cuBLASLt 13.2.0", kHere.gpu}, "p", tuned());
  EXPECT_EQ(cache.size(), 2u);
}

TEST(TuningCache, EveryMistakeIsNamed) {
  EXPECT_EQ(error(with("ns", "3")), "");
  EXPECT_EQ(error(with("algorithm", "\"first\"")), "");
  EXPECT_EQ(error("{"), "not valid JSON at byte 2");
  EXPECT_EQ(error(std::string("{}\0{}", 5)), "not valid JSON: a NUL at byte 3");
  EXPECT_EQ(error("[]"), "tuning cache: expected an object, found array");
  EXPECT_EQ(error("{\"version\": 1}"), "tuning cache: has no 'products'");
  EXPECT_EQ(error("{\"version\": 1, \"products\": [], \"x\": 0}"),
            "tuning cache: has a key 'x' that a tuning cache does not know");
  EXPECT_EQ(error(with("version", "2")), "version: expected 1, found 2");
  EXPECT_EQ(error(with("products", "{}")),
            "products: expected an array, found object");
  EXPECT_EQ(error(with("gpu", "7")),
            "products[0].gpu: expected a text, found number");
  EXPECT_EQ(error(with("ns", "-1")),
            "products[0].ns: expected a whole number from 0 to "
            "9223372036854775807, found -1");
  EXPECT_EQ(error(with("tile", "4294967296")),
            "products[0].algorithm.tile: expected a whole number from 0 to "
            "2147483647, found 4294967296");
  EXPECT_EQ(error(with("algorithm", "\"second\"")),
            "products[0].algorithm: expected an object, found string");
  EXPECT_EQ(error(with("algorithm", "{\"id\": 1}")),
            "products[0].algorithm: has no 'cluster_shape'");
  std::string twice = with("ns", "1");
  size_t from = twice.find('[') + 1, to = twice.rfind(']');
  twice.insert(to, ", " + twice.substr(from, to - from));
  EXPECT_EQ(error(twice), "products[1]: is there a second time: p");
}

TEST(TuningCache, AFileOfBytesIsNone) {
  TemporaryFolder folder;
  EXPECT_EQ(TuningCache::open(folder.write("x", "")).message(),
            "not valid JSON at byte 1");
  std::string large = folder.write("large", "");
  std::filesystem::resize_file(large, (uint64_t(64) << 20) + 1);
  EXPECT_EQ(TuningCache::open(large).message(),
            "has 67108865 bytes; a tuning cache has at most 67108864");
  std::string file = folder.write("file", "x");
  auto under = TuningCache::parse("{\"version\": 1, \"products\": []}");
  ASSERT_TRUE(under.isOk());
  auto cache = TuningCache::open(file + "/below");
  ASSERT_TRUE(cache.isOk()) << cache.message();
  EXPECT_EQ(cache->save().message(),
            "cannot make the folder " + file + ": Not a directory");
}

TEST(TuningCache, TheDefaultIsBelowTheUsersCacheFolder) {
  std::map<std::string, std::string> set = {{"HOME", "/h"},
                                            {"XDG_CACHE_HOME", "/x"}};
  auto environment = [&](const char *name) {
    auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
  EXPECT_EQ(*defaultTuningCache(environment), "/x/gtp/tuning.json");
  set["XDG_CACHE_HOME"] = "";
  EXPECT_EQ(*defaultTuningCache(environment), "/h/.cache/gtp/tuning.json");
  set.clear();
  EXPECT_EQ(defaultTuningCache(environment).message(),
            "--tuning-cache is not given, and its default lies under "
            "XDG_CACHE_HOME or HOME, neither of which is set; name a file, or "
            "give --tuning-cache=off");
}
