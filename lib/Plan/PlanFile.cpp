//===- PlanFile.cpp - Reading and writing plans ---------------------------===//

#include "gtp/Plan/PlanFile.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace gtp;
using namespace gtp::plan;

std::string gtp::plan::serializePlan(const pb::Plan &plan) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    plan.SerializeToCodedStream(&coded);
  }
  return bytes;
}

PlanHash gtp::plan::hashPlan(const pb::Plan &plan) {
  std::string bytes;
  if (plan.hash_low() == 0 && plan.hash_high() == 0) {
    bytes = serializePlan(plan);
  } else {
    pb::Plan copy = plan;
    copy.clear_hash_low();
    copy.clear_hash_high();
    bytes = serializePlan(copy);
  }
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

PlanHash gtp::plan::sealedHash(const pb::Plan &plan) {
  return {plan.hash_low(), plan.hash_high()};
}

std::string PlanHash::text() const {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016" PRIx64 "%016" PRIx64, high, low);
  return digits;
}

void gtp::plan::sealPlan(pb::Plan &plan) {
  plan.set_schema_version(kSchemaVersion);
  plan.clear_hash_low();
  plan.clear_hash_high();
  PlanHash hash = hashPlan(plan);
  plan.set_hash_low(hash.low);
  plan.set_hash_high(hash.high);
}

StatusOr<pb::Plan> gtp::plan::parsePlan(std::string_view bytes) {
  if (bytes.size() > kMaxPlanBytes)
    return Status::error("more than " + std::to_string(kMaxPlanBytes) +
                         " bytes, which is no plan");
  pb::Plan plan;
  // The error below says it; the library would print its own as well.
  google::protobuf::LogSilencer silence;
  bool parsed =
      plan.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!parsed || plan.schema_version() == 0)
    return Status::error(
        "not a plan, or cut short: expected a file that gtp-opt --emit=plan "
        "wrote, found " +
        std::to_string(bytes.size()) + " bytes that do not parse as one");
  if (plan.schema_version() != kSchemaVersion)
    return Status::error("the plan has schema version " +
                         std::to_string(plan.schema_version()) + " (by '" +
                         plan.producer() + "'), this program reads version " +
                         std::to_string(kSchemaVersion) +
                         "; compile the plan again with the gtp-opt of this "
                         "build");
  if (!(hashPlan(plan) == sealedHash(plan)))
    return Status::error(
        "the plan's hash does not match its contents: the file "
        "is damaged or was changed; compile it again");
  return plan;
}

static std::string systemError() { return std::strerror(errno); }

StatusOr<pb::Plan> gtp::plan::loadPlan(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return Status::error("cannot open '" + path + "': " + systemError());
  std::string bytes;
  char block[1 << 16];
  while (size_t got = std::fread(block, 1, sizeof(block), file.get())) {
    bytes.append(block, got);
    if (bytes.size() > kMaxPlanBytes)
      break; // parsePlan says so
  }
  if (std::ferror(file.get()))
    return Status::error("cannot read '" + path + "': " + systemError());
  StatusOr<pb::Plan> plan = parsePlan(bytes);
  if (!plan.isOk())
    return std::move(plan).status().in(path);
  return plan;
}

/// Writes and closes `file`; false with errno when any of it fails.
static bool writeAll(std::FILE *file, const std::string &bytes) {
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  good &= std::fflush(file) == 0;
  return (std::fclose(file) == 0) && good;
}

Status gtp::plan::savePlan(const pb::Plan &plan, const std::string &path) {
  pb::Plan sealed = plan;
  sealPlan(sealed);
  std::string bytes = serializePlan(sealed);
  if (bytes.size() > kMaxPlanBytes)
    return Status::error("the plan takes " + std::to_string(bytes.size()) +
                         " bytes, above the limit of " +
                         std::to_string(kMaxPlanBytes));
  if (path == "-") {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
        std::fflush(stdout) != 0)
      return Status::error("cannot write the plan to stdout: " + systemError());
    return Status::ok();
  }
  struct stat info;
  bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file || !writeAll(file, bytes))
      return Status::error("cannot write '" + path + "': " + systemError());
    return Status::ok();
  }
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::FILE *file = std::fopen(temporary.c_str(), "wb");
  if (!file)
    return Status::error("cannot write '" + path + "': " + systemError());
  if (!writeAll(file, bytes) ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    Status status =
        Status::error("cannot write '" + path + "': " + systemError());
    std::remove(temporary.c_str());
    return status;
  }
  return Status::ok();
}
