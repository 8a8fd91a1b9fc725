//===- TensorBoard.cpp - Measures of a run as TensorBoard's events --------===//
//
// A file is records of TensorFlow's TFRecord format: length (u64), masked
// CRC-32C of those 8 bytes, the event, masked CRC-32C of the event; numbers
// little-endian.
//
//===----------------------------------------------------------------------===//

#include "gtp-rt/TensorBoard.h"
#include "Crc32c.h"
#include "TensorBoard.pb.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

/// Seconds since 1970.
static double now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A name that TensorBoard takes for a file of events, and sorts by time.
static std::string fileName() {
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0)
    std::strcpy(host, "host");
  return "events.out.tfevents." +
         std::to_string(static_cast<long long>(now())) + "." + host + "." +
         std::to_string(::getpid());
}

StatusOr<TensorBoardWriter>
TensorBoardWriter::create(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error("cannot make the folder: " + error.message())
        .in(folder);
  TensorBoardWriter writer;
  writer.path = (std::filesystem::path(folder) / fileName()).string();
  writer.file.reset(std::fopen(writer.path.c_str(), "ae"));
  if (!writer.file)
    return Status::error(std::string("cannot write: ") + std::strerror(errno))
        .in(writer.path);
  tensorboard::Event event;
  event.set_wall_time(now());
  event.set_file_version("brain.Event:2");
  GTP_RETURN_IF_ERROR(writer.writeRecord(event.SerializeAsString()));
  return writer;
}

Status TensorBoardWriter::write(const StepMetrics &metrics) {
  tensorboard::Event event;
  event.set_wall_time(now());
  event.set_step(static_cast<int64_t>(metrics.step));
  auto add = [&](const char *tag, float value) {
    tensorboard::Summary::Value *scalar = event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(value);
  };
  add("loss", metrics.loss);
  add("grad_norm", metrics.gradNorm);
  add("lr", static_cast<float>(metrics.learningRate));
  if (metrics.eval)
    add("eval_loss", static_cast<float>(metrics.eval->loss));
  return writeRecord(event.SerializeAsString());
}

static void append(std::string &bytes, uint64_t number, unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    bytes += static_cast<char>(number >> (8 * i));
}

Status TensorBoardWriter::writeRecord(std::string_view event) {
  std::string record;
  append(record, event.size(), 8);
  append(record, maskedCrc32c(record), 4);
  record += event;
  append(record, maskedCrc32c(event), 4);
  if (std::fwrite(record.data(), 1, record.size(), file.get()) !=
          record.size() ||
      std::fflush(file.get()) != 0)
    return Status::error(std::string("cannot write: ") + std::strerror(errno))
        .in(path);
  return Status::ok();
}
