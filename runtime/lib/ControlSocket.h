//===- ControlSocket.h - Messages over TCP --------------------------------===//

#ifndef GTP_RT_LIB_CONTROLSOCKET_H
#define GTP_RT_LIB_CONTROLSOCKET_H

#include "gtp-rt/JobPlace.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gtp::rt {

/// A byte of kind, eight of length, the text.
struct Message {
  enum Kind : unsigned char { Hello = 1, Sign, Text, Failure, Done };
  Kind kind;
  std::string text;
};

/// One thread reads, any may send.
class ControlSocket {
public:
  ControlSocket() = default;
  explicit ControlSocket(int handle);

  bool isOpen() const;
  int handle() const;
  void close();

  /// Sends all of it, or fails.
  Status send(const Message &message);
  /// Sends it unless that would wait for the other end; for what may be lost.
  void trySend(const Message &message);
  /// Appends up to `most` of the messages that have come; others are kept for
  /// the next call. False when the other end is closed or sends what is no
  /// message.
  bool read(std::vector<Message> &messages, size_t most = SIZE_MAX);

private:
  struct State;
  std::shared_ptr<State> state;
};

/// In rank 0: the sockets of the other ranks, by rank ([0] is none). Fails
/// naming those that have not come in time.
StatusOr<std::vector<ControlSocket>> acceptRanks(const std::string &address,
                                                 uint16_t port, uint64_t size,
                                                 double seconds);
/// In other ranks.
StatusOr<ControlSocket> connectToRoot(const JobPlace &place, double seconds);

} // namespace gtp::rt

#endif // GTP_RT_LIB_CONTROLSOCKET_H
