//===- TensorBoard.h - Measures of a run as TensorBoard's events ----------===//

#ifndef GTP_RT_TENSORBOARD_H
#define GTP_RT_TENSORBOARD_H

#include "gtp-rt/Metrics.h"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace gtp::rt {

/// A file of events in a folder that `tensorboard --logdir` takes: the scalars
/// loss, grad_norm and lr of each step, and eval_loss of those behind which
/// there is an evaluation, written whole as the step ends.
class TensorBoardWriter {
public:
  /// Makes the folder if there is none. The file's name is of this time and
  /// process, so that runs may share a folder.
  static StatusOr<TensorBoardWriter> create(const std::string &folder);
  Status write(const StepMetrics &metrics);

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  Status writeRecord(std::string_view event);

  std::string path;
  std::unique_ptr<std::FILE, Close> file;
};

} // namespace gtp::rt

#endif // GTP_RT_TENSORBOARD_H
