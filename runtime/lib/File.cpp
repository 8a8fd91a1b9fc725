//===- File.cpp - Mapped inputs, and outputs that appear whole ------------===//

#include "gtp-rt/File.h"

#include "gtp/Support/LinkTarget.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

static Status systemError(const std::string &what) {
  return Status::error(what + ": " + std::strerror(errno));
}

StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  // A pipe that nobody writes to is refused too, not waited for.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return systemError("cannot open");
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return Status::error(
        "is not a regular file; a file that can be mapped is needed");
  }
  MappedFile file;
  file.length = uint64_t(status.st_size);
  if (file.length > 0) {
    void *address =
        ::mmap(nullptr, file.length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      Status error = systemError("cannot map");
      ::close(descriptor);
      return error;
    }
    file.bytes = static_cast<const uint8_t *>(address);
  }
  ::close(descriptor);
  return file;
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(bytes), length);
}

/// Neither absent nor a regular file: writing goes to it, not over it.
static bool isSpecial(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

Status gtp::rt::checkWritable(const std::string &path) {
  struct stat status;
  bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno == ELOOP)
    return systemError("cannot write").in(path);
  if (exists && S_ISDIR(status.st_mode))
    return Status::error("is a folder; name a file").in(path);
  if (exists && ::access(path.c_str(), W_OK) != 0)
    return systemError("cannot write").in(path);
  if (exists && !S_ISREG(status.st_mode))
    return Status::ok();
  std::string target = linkTarget(path);
  size_t slash = target.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return systemError("cannot write: folder '" + folder + "'").in(path);
  return Status::ok();
}

StatusOr<OutputFile> OutputFile::create(const std::string &path) {
  OutputFile file;
  file.finalPath = path;
  file.targetPath = linkTarget(path);
  std::string target = path;
  int flags = O_WRONLY | O_CLOEXEC;
  if (!isSpecial(path)) {
    target = file.targetPath + ".tmp" + std::to_string(::getpid());
    flags |= O_CREAT | O_TRUNC;
  }
  file.descriptor = ::open(target.c_str(), flags, 0666);
  if (file.descriptor < 0)
    return systemError("cannot write").in(target);
  if (target != path)
    file.temporaryPath = target;
  return file;
}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(finalPath, other.finalPath);
  std::swap(targetPath, other.targetPath);
  std::swap(temporaryPath, other.temporaryPath);
  return *this;
}

void OutputFile::discard() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
  if (!temporaryPath.empty())
    ::unlink(temporaryPath.c_str());
  temporaryPath.clear();
}

OutputFile::~OutputFile() { discard(); }

Status OutputFile::write(const void *bytes, uint64_t size) {
  const char *next = static_cast<const char *>(bytes);
  while (size > 0) {
    ssize_t written = ::write(descriptor, next, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError("cannot write").in(finalPath);
    next += written;
    size -= uint64_t(written);
  }
  return Status::ok();
}

Status OutputFile::commit() {
  int closed = ::close(descriptor);
  descriptor = -1;
  if (closed != 0)
    return systemError("cannot write").in(finalPath);
  if (!temporaryPath.empty() &&
      ::rename(temporaryPath.c_str(), targetPath.c_str()) != 0)
    return systemError("cannot rename '" + temporaryPath + "' to it")
        .in(finalPath);
  temporaryPath.clear();
  return Status::ok();
}
