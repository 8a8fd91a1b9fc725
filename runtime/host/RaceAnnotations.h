//===- RaceAnnotations.h - Tells ThreadSanitizer what a kernel touches ----===//
//
// A BLAS is invisible to ThreadSanitizer, so the executor names the bytes of
// every operand itself. Empty without the sanitizer.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_RACEANNOTATIONS_H
#define GTP_RUNTIME_HOST_RACEANNOTATIONS_H

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define GTP_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GTP_THREAD_SANITIZER 1
#endif
#endif

#ifdef GTP_THREAD_SANITIZER
extern "C" {
void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#endif

namespace gtp::rt::host {

/// Rows of `rowBytes` bytes whose starts are `pitchBytes` apart.
inline void annotateRows([[maybe_unused]] const void *address,
                         [[maybe_unused]] uint64_t rows,
                         [[maybe_unused]] uint64_t rowBytes,
                         [[maybe_unused]] uint64_t pitchBytes,
                         [[maybe_unused]] bool write) {
#ifdef GTP_THREAD_SANITIZER
  if (rowBytes == pitchBytes) {
    rowBytes *= rows;
    rows = rowBytes == 0 ? 0 : 1;
  }
  char *row = static_cast<char *>(const_cast<void *>(address));
  for (; rows != 0; --rows, row += pitchBytes) {
    if (write)
      __tsan_write_range(row, rowBytes);
    else
      __tsan_read_range(row, rowBytes);
  }
#endif
}

inline void annotateBytes(const void *address, uint64_t bytes, bool write) {
  annotateRows(address, 1, bytes, bytes, write);
}

/// A library's own locks would order the callers' streams by accident and hide
/// races; inside the scope nothing the thread does is seen.
class IgnoreLibrary {
public:
  IgnoreLibrary() {
#ifdef GTP_THREAD_SANITIZER
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~IgnoreLibrary() {
#ifdef GTP_THREAD_SANITIZER
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
#endif
  }
  IgnoreLibrary(const IgnoreLibrary &) = delete;
  IgnoreLibrary &operator=(const IgnoreLibrary &) = delete;
};

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_RACEANNOTATIONS_H
