//===- SafetensorsTest.cpp ------------------------------------------------===//

#include "gtp-rt/Safetensors.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TemporaryFolder;

/// A file's bytes from its header and data.
static std::string fileOf(const std::string &header, const std::string &data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += char(uint64_t(header.size()) >> (8 * i));
  return bytes + header + data;
}

static std::string parseError(const std::string &header,
                              const std::string &data) {
  auto parsed = parseSafetensors(fileOf(header, data));
  return parsed.isOk() ? "" : parsed.message();
}

static const char *const kTwoTensors =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]}})";

static std::string oneTensor(const std::string &dtype, const std::string &shape,
                             const std::string &offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

TEST(Safetensors, WritesWhatItReadsAndTheSameBytesTwice) {
  TemporaryFolder folder;
  std::vector<float> values = {1, -2.5f, 0, 1e-40f, 3e38f, 7};
  for (const char *name : {"x.safetensors", "y.safetensors"}) {
    auto writer = SafetensorsWriter::create(folder.path(name),
                                            {{"m.\"é", {2, 2}}, {"v", {2}}});
    ASSERT_TRUE(writer.isOk()) << writer.message();
    ASSERT_TRUE(writer->append(values.data(), 5).isOk());
    ASSERT_TRUE(writer->append(values.data() + 5, 1).isOk());
    ASSERT_TRUE(writer->commit().isOk());
  }
  EXPECT_EQ(TemporaryFolder::read(folder.path("x.safetensors")),
            TemporaryFolder::read(folder.path("y.safetensors")));
  EXPECT_EQ(folder.count(), 2u);
  auto reader = SafetensorsReader::open(folder.path("x.safetensors"));
  ASSERT_TRUE(reader.isOk()) << reader.message();
  EXPECT_EQ(reader->names(), (std::vector<std::string>{"m.\"é", "v"}));
  EXPECT_EQ(reader->find("m.\"é")->shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(reader->find("absent"), nullptr);
  float found[3];
  reader->read("m.\"é", 1, 3, found);
  EXPECT_EQ(std::vector<float>(found, found + 3),
            std::vector<float>(values.begin() + 1, values.begin() + 4));
}

TEST(Safetensors, AnUnfinishedFileNeverAppears) {
  TemporaryFolder folder;
  folder.write("out", "before");
  {
    auto writer = SafetensorsWriter::create(folder.path("out"), {{"v", {2}}});
    ASSERT_TRUE(writer.isOk());
    float value = 1;
    ASSERT_TRUE(writer->append(&value, 1).isOk());
    EXPECT_FALSE(writer->commit().isOk());
  }
  EXPECT_EQ(TemporaryFolder::read(folder.path("out")), "before");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Safetensors, NarrowTypesBecomeFloat32) {
  TemporaryFolder folder;
  // 1, -2, smallest subnormal, infinity
  std::string halves("\x00\x3c\x00\xc0\x01\x00\x00\x7c", 8);
  std::string path =
      folder.write("h", fileOf(oneTensor("F16", "[4]", "[0,8]"), halves));
  auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader.isOk()) << reader.message();
  float found[4];
  reader->read("a", 0, 4, found);
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[1], -2);
  EXPECT_EQ(found[2], std::ldexp(1.0f, -24));
  EXPECT_EQ(found[3], INFINITY);
  // bfloat16: 1, -0.5
  path = folder.write("b", fileOf(oneTensor("BF16", "[2]", "[0,4]"),
                                  std::string("\x80\x3f\x00\xbf", 4)));
  auto narrow = SafetensorsReader::open(path);
  ASSERT_TRUE(narrow.isOk()) << narrow.message();
  narrow->read("a", 0, 2, found);
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[1], -0.5f);
}

TEST(Safetensors, EveryWrongHeaderIsOneMessage) {
  std::string data(12, 0);
  EXPECT_EQ(parseError(kTwoTensors, data), "");
  EXPECT_EQ(parseError("[]", ""),
            "header does not start with '{'; not a safetensors file");
  EXPECT_EQ(parseError("{\"a\":", ""), "header: not valid JSON at byte 6");
  EXPECT_EQ(parseError(kTwoTensors, data + "x"),
            "data bytes from 12 belong to no tensor; the file has 13");
  EXPECT_EQ(
      parseError(kTwoTensors, data.substr(1)),
      "tensor 'b': 'data_offsets' [8, 12] is not a range of the 11 data bytes");
  EXPECT_EQ(
      parseError(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
                 std::string(6, 0)),
      "tensors 'a' and 'b' overlap at data byte 2");
  EXPECT_EQ(parseError(R"({"a":{},"a":{}})", ""),
            "header: the key 'a' is given twice in one object");
  EXPECT_EQ(parseError(oneTensor("F8_E4M3", "[4]", "[0,4]"), "1234"),
            "tensor 'a': dtype 'F8_E4M3' is not supported; expected F32, F16 "
            "or BF16");
  EXPECT_EQ(parseError(oneTensor("F32", "[2]", "[0,4]"), "1234"),
            "tensor 'a': shape [2] needs 8 bytes, 'data_offsets' gives 4");
  EXPECT_EQ(
      parseError(oneTensor("F32", "[-1]", "[0,4]"), "1234"),
      "tensor 'a': 'shape' holds something other than non-negative integers");
  EXPECT_EQ(
      parseError(oneTensor("F32", "[4294967296,4294967296]", "[0,4]"), "1234"),
      "tensor 'a': shape [4294967296, 4294967296] overflows");
  EXPECT_EQ(
      parseError(oneTensor("F32", "[1]", "[4,0]"), "1234"),
      "tensor 'a': 'data_offsets' [4, 0] is not a range of the 4 data bytes");
  EXPECT_EQ(parseError(R"({"a":3})", ""), "tensor 'a': has no 'dtype'");
  EXPECT_EQ(
      parseError(oneTensor("F32", "[1]", "[0,4]").replace(14, 5, "1"), "1234"),
      "tensor 'a': 'dtype' is not a string");
  EXPECT_EQ(parseError(oneTensor("F32", "1", "[0,4]"), "1234"),
            "tensor 'a': 'shape' is not a list");
  EXPECT_EQ(parseError("{\"a\":" + std::string(1000, '['), ""),
            "header: nested deeper than 16 levels");
}

TEST(Safetensors, LengthsAreBounded) {
  EXPECT_EQ(parseSafetensors("short").message(),
            "has 5 bytes; a safetensors file has at least 8");
  EXPECT_EQ(parseSafetensors(std::string(8, '\xff')).message(),
            "header of 18446744073709551615 bytes does not fit the file of 8 "
            "bytes (at "
            "most 100000000); truncated, or not a safetensors file");
}

TEST(Safetensors, TruncatedFilesAreRefused) {
  std::string whole = fileOf(kTwoTensors, std::string(12, 1));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parseSafetensors(whole.substr(0, size)).isOk()) << size;
}

static std::string named(const std::string &name) {
  return fileOf(R"({")" + name +
                    R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                std::string(4, 0));
}

TEST(Safetensors, ShardsAreOneCheckpoint) {
  TemporaryFolder folder;
  folder.write("1.safetensors", named("a"));
  folder.write("2.safetensors", named("b"));
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  auto reader = SafetensorsReader::open(folder.path(""));
  ASSERT_TRUE(reader.isOk()) << reader.message();
  EXPECT_EQ(reader->names(), (std::vector<std::string>{"a", "b"}));
}

TEST(Safetensors, EveryWrongFolderIsOneMessage) {
  TemporaryFolder folder;
  auto error = [&] {
    std::string message = SafetensorsReader::open(folder.path("")).message();
    return message.substr(std::min(message.size(), folder.path("").size()));
  };
  EXPECT_EQ(
      error(),
      ": holds neither model.safetensors nor model.safetensors.index.json");
  folder.write("1.safetensors", named("a"));
  folder.write("2.safetensors", named("a"));
  const char *index = "model.safetensors.index.json";
  folder.write(index, "{}");
  EXPECT_EQ(error(),
            "/model.safetensors.index.json: has no 'weight_map' of tensor "
            "names to file names");
  folder.write(index, R"({"weight_map":{"a":"../a"}})");
  EXPECT_EQ(error(),
            "/model.safetensors.index.json: 'weight_map' gives tensor 'a' no "
            "plain file name of the same folder");
  folder.write(index,
               R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})");
  EXPECT_EQ(error(), "/model.safetensors.index.json: lists tensor 'b' in "
                     "1.safetensors, which does not hold it");
  folder.write(index,
               R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  EXPECT_EQ(error(), "/2.safetensors: tensor 'a' is also in " +
                         folder.path("") + "/1.safetensors");
  folder.write("2.safetensors", named("c"));
  folder.write(index, R"({"weight_map":{"a":"1.safetensors"}})");
  folder.write("1.safetensors", named("c"));
  EXPECT_EQ(error(), "/model.safetensors.index.json: lists tensor 'a' in "
                     "1.safetensors, which does not hold it");
  folder.write("1.safetensors", fileOf(kTwoTensors, std::string(12, 0)));
  EXPECT_EQ(error(), "/1.safetensors: tensor 'b' is not listed in "
                     "model.safetensors.index.json");
}

TEST(Safetensors, AnAliasOfTheMetadataIsFollowed) {
  TemporaryFolder folder;
  std::string path =
      folder.write("m", fileOf(R"({"__metadata__":{"head":"a"},)" +
                                   oneTensor("F32", "[1]", "[0,4]").substr(1),
                               std::string("\0\0\x80\x3f", 4)));
  auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader.isOk()) << reader.message();
  ASSERT_NE(reader->find("head"), nullptr);
  float value;
  reader->read("head", 0, 1, &value);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(reader->names(), std::vector<std::string>{"a"});
}
