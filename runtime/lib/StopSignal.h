//===- StopSignal.h - SIGTERM asks for an end -----------------------------===//

#ifndef GTP_RT_LIB_STOPSIGNAL_H
#define GTP_RT_LIB_STOPSIGNAL_H

#include <csignal>

namespace gtp::rt {

/// While one lives, the first SIGTERM is kept for whoever asks, and the second
/// ends the process as without it. One at a time: signals are the process's.
class StopSignal {
public:
  StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;
  ~StopSignal();

  bool requested() const;

private:
  struct sigaction previous = {};
};

} // namespace gtp::rt

#endif // GTP_RT_LIB_STOPSIGNAL_H
