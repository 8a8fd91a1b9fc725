//===- ControlChannel.cpp - How the processes of a job talk ---------------===//

#include "gtp-rt/ControlChannel.h"
#include "ControlSocket.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

namespace {

using Clock = std::chrono::steady_clock;

/// The other end of a connection.
struct Peer {
  uint64_t rank = 0;
  ControlSocket socket;
  Clock::time_point heard = Clock::now();
  std::string progress;
  std::deque<std::string> texts;
  bool said = false; ///< that it is done
};

class Channel : public ControlChannel {
public:
  Channel(const JobPlace &place, ChannelOptions options)
      : place(place), options(std::move(options)) {}
  ~Channel() override;
  Status connect();

  uint64_t rank() const override { return place.rank; }
  uint64_t size() const override { return place.size; }
  StatusOr<std::vector<std::string>> exchange(const std::string &mine) override;
  Status send(const void *data, size_t bytes) override;
  StatusOr<std::string> receive(uint64_t from) override;
  void setProgress(std::function<std::string()> progress) override;
  Status health() const override;
  void fail(const std::string &why) override;
  Status finish() override;

private:
  bool isRoot() const { return place.rank == 0; }
  Peer &peer(uint64_t rank) { return *peers[isRoot() ? rank - 1 : 0]; }
  void watch();
  void readFrom(Peer &peer);
  void take(Peer &peer, Message message);
  void sendSigns();
  void checkSilence();
  void setFailure(const std::string &why);
  void lose(Peer &peer, const std::string &how);
  static Clock::duration seconds(double value) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(value));
  }

  const JobPlace place;
  const ChannelOptions options;
  std::vector<std::unique_ptr<Peer>> peers;
  std::thread thread;

  mutable std::mutex mutex; ///< of all below, and of what peers hold
  std::condition_variable changed;
  std::optional<std::string> failure;
  Clock::time_point failed;
  bool finished = false, stopping = false;

  std::mutex progressMutex; ///< while `progress` is called or changed
  std::function<std::string()> progress;
};

} // namespace

Channel::~Channel() {
  setProgress(nullptr);
  if (thread.joinable() && !finished && health().isOk())
    fail("rank " + std::to_string(place.rank) + " ended before the job did");
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  if (thread.joinable())
    thread.join();
}

Status Channel::connect() {
  if (isRoot()) {
    GTP_ASSIGN_OR_RETURN(std::vector<ControlSocket> sockets,
                         acceptRanks(place.address, place.port, place.size,
                                     options.connectSeconds));
    for (uint64_t rank = 1; rank < place.size; ++rank) {
      peers.push_back(std::make_unique<Peer>());
      peers.back()->rank = rank;
      peers.back()->socket = std::move(sockets[rank]);
    }
  } else {
    GTP_ASSIGN_OR_RETURN(ControlSocket socket,
                         connectToRoot(place, options.connectSeconds));
    peers.push_back(std::make_unique<Peer>());
    peers.back()->socket = std::move(socket);
  }
  thread = std::thread([this] { watch(); });
  return Status::ok();
}

void Channel::setFailure(const std::string &why) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure)
      return;
    failure = why;
    failed = Clock::now();
  }
  changed.notify_all();
  // Rank 0 tells the others; the news may come back, and is known then.
  for (const std::unique_ptr<Peer> &peer : peers)
    peer->socket.trySend({Message::Failure, why});
}

void Channel::fail(const std::string &why) { setFailure(why); }

void Channel::lose(Peer &peer, const std::string &how) {
  std::string last;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (peer.said || finished)
      return;
    last = peer.progress;
  }
  setFailure("rank " + std::to_string(peer.rank) + " " + how +
             (last.empty() ? "" : "; it had completed last:" + last));
}

void Channel::take(Peer &peer, Message message) {
  std::string failureText;
  {
    std::lock_guard<std::mutex> lock(mutex);
    peer.heard = Clock::now();
    switch (message.kind) {
    case Message::Sign:
      peer.progress = std::move(message.text);
      return;
    case Message::Text:
      peer.texts.push_back(std::move(message.text));
      break;
    case Message::Done:
      peer.said = true;
      break;
    default:
      failureText = std::move(message.text);
    }
  }
  changed.notify_all();
  if (!failureText.empty())
    setFailure(failureText);
}

void Channel::readFrom(Peer &peer) {
  std::vector<Message> messages;
  bool open = peer.socket.read(messages);
  for (Message &message : messages)
    take(peer, std::move(message));
  if (!open) {
    peer.socket.close();
    lose(peer, "ended without a word");
  }
}

void Channel::sendSigns() {
  std::string text;
  {
    std::lock_guard<std::mutex> lock(progressMutex);
    text = progress ? progress() : "";
  }
  for (const std::unique_ptr<Peer> &peer : peers)
    peer->socket.trySend({Message::Sign, text});
}

void Channel::checkSilence() {
  for (const std::unique_ptr<Peer> &peer : peers) {
    Clock::time_point heard;
    {
      std::lock_guard<std::mutex> lock(mutex);
      heard = peer->heard;
    }
    if (Clock::now() - heard > seconds(options.silenceSeconds))
      lose(*peer, "has given no sign of life for " +
                      std::to_string(static_cast<int>(options.silenceSeconds)) +
                      " seconds: it is stopped, or cannot be reached");
  }
}

void Channel::watch() {
  Clock::time_point nextSign = Clock::now();
  bool hangReported = false;
  // What came behind the greeting.
  for (const std::unique_ptr<Peer> &peer : peers)
    readFrom(*peer);
  for (;;) {
    std::vector<pollfd> handles;
    std::vector<Peer *> owners;
    for (const std::unique_ptr<Peer> &peer : peers)
      if (peer->socket.isOpen()) {
        handles.push_back({peer->socket.handle(), POLLIN, 0});
        owners.push_back(peer.get());
      }
    poll(handles.data(), handles.size(), 100);
    for (size_t i = 0; i < handles.size(); ++i)
      if (handles[i].revents)
        readFrom(*owners[i]);
    if (Clock::now() >= nextSign) {
      sendSigns();
      nextSign = Clock::now() + seconds(options.silenceSeconds / 10);
    }
    checkSilence();
    std::unique_lock<std::mutex> lock(mutex);
    if (stopping)
      return;
    if (failure && !hangReported &&
        Clock::now() - failed > seconds(options.graceSeconds)) {
      hangReported = true;
      std::string text = *failure;
      lock.unlock();
      options.onHang(text);
    }
  }
}

Status Channel::health() const {
  std::lock_guard<std::mutex> lock(mutex);
  return failure ? Status::error(*failure) : Status::ok();
}

void Channel::setProgress(std::function<std::string()> describe) {
  std::lock_guard<std::mutex> lock(progressMutex);
  progress = std::move(describe);
}

Status Channel::send(const void *data, size_t bytes) {
  GTP_RETURN_IF_ERROR(health());
  return peer(0).socket.send(
      {Message::Text, std::string(static_cast<const char *>(data), bytes)});
}

StatusOr<std::string> Channel::receive(uint64_t from) {
  Peer &source = peer(from);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return failure || !source.texts.empty(); });
  if (source.texts.empty())
    return Status::error(*failure);
  std::string text = std::move(source.texts.front());
  source.texts.pop_front();
  return text;
}

StatusOr<std::vector<std::string>> Channel::exchange(const std::string &mine) {
  std::vector<std::string> all(place.size);
  if (!isRoot()) {
    GTP_RETURN_IF_ERROR(send(mine.data(), mine.size()));
    for (std::string &text : all) {
      GTP_ASSIGN_OR_RETURN(text, receive(0));
    }
    return all;
  }
  all[0] = mine;
  for (uint64_t rank = 1; rank < place.size; ++rank) {
    GTP_ASSIGN_OR_RETURN(all[rank], receive(rank));
  }
  for (const std::unique_ptr<Peer> &peer : peers)
    for (const std::string &text : all)
      GTP_RETURN_IF_ERROR(peer->socket.send({Message::Text, text}));
  return all;
}

Status Channel::finish() {
  for (const std::unique_ptr<Peer> &peer : peers)
    GTP_RETURN_IF_ERROR(peer->socket.send({Message::Done, ""}));
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] {
    bool all = true;
    for (const std::unique_ptr<Peer> &peer : peers)
      all = all && peer->said;
    return failure || all;
  });
  if (failure)
    return Status::error(*failure);
  finished = true;
  return Status::ok();
}

StatusOr<std::unique_ptr<ControlChannel>>
ControlChannel::open(const JobPlace &place, ChannelOptions options) {
  if (!options.onHang)
    options.onHang = [rank = place.rank](const std::string &why) {
      std::fprintf(stderr, "gtp-run: error: rank %lu hangs after: %s\n",
                   static_cast<unsigned long>(rank), why.c_str());
      _exit(1);
    };
  auto channel = std::make_unique<Channel>(place, std::move(options));
  GTP_RETURN_IF_ERROR(channel->connect());
  return std::unique_ptr<ControlChannel>(std::move(channel));
}
