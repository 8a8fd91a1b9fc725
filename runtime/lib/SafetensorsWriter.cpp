//===- SafetensorsWriter.cpp - float32 tensors, streamed ------------------===//

#include "gtp-rt/Safetensors.h"

#include <nlohmann/json.hpp>

using namespace gtp;
using namespace gtp::rt;

StatusOr<SafetensorsWriter>
SafetensorsWriter::create(const std::string &path,
                          const std::vector<Declaration> &tensors) {
  SafetensorsWriter writer;
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt"; // what transformers asks for
  uint64_t offset = 0;
  for (const Declaration &tensor : tensors) {
    uint64_t elements = 1;
    for (uint64_t size : tensor.shape)
      elements *= size;
    uint64_t end = offset + 4 * elements;
    header[tensor.name] = {
        {"dtype", "F32"},
        {"shape", tensor.shape},
        {"data_offsets", std::vector<uint64_t>{offset, end}}};
    offset = end;
    writer.remaining += elements;
  }
  std::string text = header.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Spaces align the data to 8 bytes, as the format's own writer does.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = uint8_t(uint64_t(text.size()) >> (8 * i));
  GTP_ASSIGN_OR_RETURN(writer.file, OutputFile::create(path));
  GTP_RETURN_IF_ERROR(writer.file.write(length, sizeof length));
  GTP_RETURN_IF_ERROR(writer.file.write(text.data(), text.size()));
  return writer;
}

Status SafetensorsWriter::append(const float *values, uint64_t count) {
  if (count > remaining)
    return Status::error("internal error: more elements than declared");
  remaining -= count;
  return file.write(values, 4 * count);
}

Status SafetensorsWriter::commit() {
  if (remaining != 0)
    return Status::error("internal error: " + std::to_string(remaining) +
                         " declared elements were not written");
  return file.commit();
}
