//===- ControlSocket.cpp - Messages over TCP ------------------------------===//

#include "ControlSocket.h"
#include "ParseNumber.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

static constexpr size_t kHeader = 9;
/// More than any shard; what claims to be longer is no message.
static constexpr uint64_t kLongest = uint64_t(1) << 40;
static constexpr char kGreeting[] = "gtp-run 1 ";

struct ControlSocket::State {
  int handle = -1;
  std::mutex sending;
  std::string inbox;

  ~State() {
    if (handle >= 0)
      ::close(handle);
  }
};

ControlSocket::ControlSocket(int handle) : state(std::make_shared<State>()) {
  state->handle = handle;
  int on = 1;
  setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool ControlSocket::isOpen() const { return state && state->handle >= 0; }
int ControlSocket::handle() const { return state->handle; }

void ControlSocket::close() {
  std::lock_guard<std::mutex> lock(state->sending);
  if (state->handle >= 0)
    ::close(state->handle);
  state->handle = -1;
}

static std::string encode(const Message &message) {
  std::string bytes(1, static_cast<char>(message.kind));
  uint64_t length = message.text.size();
  for (unsigned i = 0; i < 8; ++i)
    bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + message.text;
}

/// Sends from `sent` on, waiting for the other end to take it.
static bool sendRest(int handle, const std::string &bytes, size_t sent) {
  while (sent < bytes.size()) {
    ssize_t now =
        ::send(handle, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0)
      return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

Status ControlSocket::send(const Message &message) {
  std::lock_guard<std::mutex> lock(state->sending);
  if (state->handle < 0 || !sendRest(state->handle, encode(message), 0))
    return Status::error("the connection to another rank is lost");
  return Status::ok();
}

void ControlSocket::trySend(const Message &message) {
  if (!state)
    return;
  std::unique_lock<std::mutex> lock(state->sending, std::try_to_lock);
  if (!lock || state->handle < 0)
    return;
  std::string bytes = encode(message);
  ssize_t sent = ::send(state->handle, bytes.data(), bytes.size(),
                        MSG_NOSIGNAL | MSG_DONTWAIT);
  // A part of a message must be followed by its rest, or nothing after it is
  // understood.
  if (sent > 0)
    sendRest(state->handle, bytes, static_cast<size_t>(sent));
}

bool ControlSocket::read(std::vector<Message> &messages, size_t most) {
  char buffer[1 << 16];
  bool open = true;
  for (;;) {
    ssize_t got = recv(state->handle, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got > 0)
      state->inbox.append(buffer, static_cast<size_t>(got));
    else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
      open = false;
    if (got < static_cast<ssize_t>(sizeof buffer))
      break;
  }
  size_t at = 0;
  for (; most > 0 && state->inbox.size() - at >= kHeader; --most) {
    uint64_t length = 0;
    for (unsigned i = 0; i < 8; ++i)
      length |= uint64_t(static_cast<unsigned char>(state->inbox[at + 1 + i]))
                << (8 * i);
    auto kind = static_cast<unsigned char>(state->inbox[at]);
    if (kind < Message::Hello || kind > Message::Done || length > kLongest)
      return false;
    if (state->inbox.size() - at - kHeader < length)
      break;
    messages.push_back({static_cast<Message::Kind>(kind),
                        state->inbox.substr(at + kHeader, length)});
    at += kHeader + length;
  }
  state->inbox.erase(0, at);
  return open;
}

using Clock = std::chrono::steady_clock;

static Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

/// A name's addresses, freed at the end.
static StatusOr<std::shared_ptr<addrinfo>> resolve(const std::string &name,
                                                   uint16_t port, int flags) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  int error = getaddrinfo(name.empty() ? nullptr : name.c_str(),
                          std::to_string(port).c_str(), &hints, &found);
  if (error)
    return Status::error("MASTER_ADDR=" + name +
                         ": no such machine: " + gai_strerror(error));
  return std::shared_ptr<addrinfo>(found, freeaddrinfo);
}

/// Reads the greeting of who has connected: its rank, if it is of this job.
static bool greet(ControlSocket &socket, uint64_t size, uint64_t &rank) {
  Clock::time_point deadline = after(5);
  std::vector<Message> messages;
  while (messages.empty()) {
    pollfd handle = {socket.handle(), POLLIN, 0};
    if (poll(&handle, 1, 200) > 0 && !socket.read(messages, 1))
      return false;
    if (Clock::now() > deadline)
      return false;
  }
  const std::string &text = messages[0].text;
  const size_t start = sizeof kGreeting - 1;
  return messages[0].kind == Message::Hello &&
         text.compare(0, start, kGreeting) == 0 &&
         parseWhole(std::string_view(text).substr(start), rank) && rank > 0 &&
         rank < size;
}

static StatusOr<int> listenAt(const std::string &address, uint16_t port) {
  bool local = address == "127.0.0.1" || address == "localhost";
  GTP_ASSIGN_OR_RETURN(std::shared_ptr<addrinfo> where,
                       resolve(local ? "127.0.0.1" : "", port, AI_PASSIVE));
  int handle = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1;
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (handle < 0 || bind(handle, where->ai_addr, where->ai_addrlen) != 0 ||
      listen(handle, 1024) != 0) {
    std::string why = std::strerror(errno);
    if (handle >= 0)
      ::close(handle);
    return Status::error("rank 0 cannot listen on port " +
                         std::to_string(port) + ": " + why +
                         "; set MASTER_PORT to a free one");
  }
  return handle;
}

StatusOr<std::vector<ControlSocket>>
gtp::rt::acceptRanks(const std::string &address, uint16_t port, uint64_t size,
                     double seconds) {
  GTP_ASSIGN_OR_RETURN(int listener, listenAt(address, port));
  std::shared_ptr<void> closer(nullptr,
                               [listener](void *) { ::close(listener); });
  std::vector<ControlSocket> sockets(size);
  Clock::time_point deadline = after(seconds);
  for (uint64_t missing = size - 1; missing > 0;) {
    pollfd handle = {listener, POLLIN, 0};
    if (poll(&handle, 1, 200) > 0) {
      int accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted >= 0) {
        ControlSocket socket(accepted);
        uint64_t rank = 0;
        // Whoever else knocks is not of this job.
        if (greet(socket, size, rank) && !sockets[rank].isOpen()) {
          sockets[rank] = std::move(socket);
          --missing;
        }
      }
    }
    if (missing == 0 || Clock::now() < deadline)
      continue;
    std::string text;
    for (uint64_t rank = 1; rank < size; ++rank)
      if (!sockets[rank].isOpen())
        text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return Status::error("these ranks have not connected to rank 0 within " +
                         std::to_string(static_cast<int>(seconds)) +
                         " seconds: " + text);
  }
  return sockets;
}

StatusOr<ControlSocket> gtp::rt::connectToRoot(const JobPlace &place,
                                               double seconds) {
  Clock::time_point deadline = after(seconds);
  for (;;) {
    GTP_ASSIGN_OR_RETURN(std::shared_ptr<addrinfo> addresses,
                         resolve(place.address, place.port, 0));
    for (addrinfo *to = addresses.get(); to; to = to->ai_next) {
      int handle = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (handle < 0)
        continue;
      if (connect(handle, to->ai_addr, to->ai_addrlen) == 0) {
        ControlSocket socket(handle);
        GTP_RETURN_IF_ERROR(socket.send(
            {Message::Hello, kGreeting + std::to_string(place.rank)}));
        return socket;
      }
      ::close(handle);
    }
    if (Clock::now() > deadline)
      return Status::error("rank " + std::to_string(place.rank) +
                           " cannot connect to rank 0 at " + place.address +
                           ":" + std::to_string(place.port) + " within " +
                           std::to_string(static_cast<int>(seconds)) +
                           " seconds");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}
