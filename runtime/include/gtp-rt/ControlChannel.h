//===- ControlChannel.h - How the processes of a job talk -----------------===//
//
// TCP connections of every rank to rank 0, apart from the GPUs: exchange of
// small texts, shards on their way to a dump, and the news that a rank has
// failed. A thread of each process sends signs of life and watches for those of
// the others, so that a rank that dies, stops or is cut off ends every rank in
// bounded time.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_CONTROLCHANNEL_H
#define GTP_RT_CONTROLCHANNEL_H

#include "gtp-rt/JobPlace.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gtp::rt {

struct ChannelOptions {
  /// Until all ranks have connected.
  double connectSeconds = 120;
  /// A rank that is silent for so long has failed.
  double silenceSeconds = 20;
  /// From a failure until `onHang` is called, if the process has not ended.
  double graceSeconds = 10;
  /// Called by the channel's thread with what failed. The default prints it as
  /// an error and ends the process.
  std::function<void(const std::string &)> onHang;
};

class ControlChannel {
public:
  virtual ~ControlChannel() = default;

  /// Connects all ranks of the job; every rank must call it.
  static StatusOr<std::unique_ptr<ControlChannel>>
  open(const JobPlace &place, ChannelOptions options = {});

  virtual uint64_t rank() const = 0;
  virtual uint64_t size() const = 0;

  /// Every rank's text, by rank; all ranks must call it.
  virtual StatusOr<std::vector<std::string>>
  exchange(const std::string &mine) = 0;
  /// To rank 0, which must call `receive` for this rank.
  virtual Status send(const void *data, size_t bytes) = 0;
  virtual StatusOr<std::string> receive(uint64_t from) = 0;

  /// What this rank tells the others of how far it is, with its signs of life;
  /// called by the channel's thread, and not after it has been replaced.
  virtual void setProgress(std::function<std::string()> progress) = 0;

  /// The first failure of the job, which names its rank.
  virtual Status health() const = 0;
  /// Tells all ranks that this one has failed.
  virtual void fail(const std::string &why) = 0;
  /// All is done; waits for the other ranks to say so too. A channel that ends
  /// without is a failed rank.
  virtual Status finish() = 0;
};

} // namespace gtp::rt

#endif // GTP_RT_CONTROLCHANNEL_H
