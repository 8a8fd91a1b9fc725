//===- WeightSource.h - Where a run's first weights come from -------------===//

#ifndef GTP_RT_WEIGHTSOURCE_H
#define GTP_RT_WEIGHTSOURCE_H

#include "gtp-rt/RunPlan.h"
#include "gtp-rt/Safetensors.h"

#include <map>
#include <optional>

namespace gtp::rt {

/// Logical float32 values of every checkpoint tensor of a plan: initial ones,
/// or those of a checkpoint whose names and shapes are the plan's.
class WeightSource {
public:
  static WeightSource initial(const RunPlan &plan, uint64_t seed);
  static StatusOr<WeightSource> checkpoint(const RunPlan &plan,
                                           const std::string &path);

  /// All elements of tensor `tensor` of `parameter`, in the parameter's layout.
  void read(const plan::pb::Parameter &parameter, int tensor,
            float *destination) const;
  /// Whether any part of `parameter` can be had alone: initial weights that
  /// checkpoints lay out as the parameter does.
  bool readsParts(const plan::pb::Parameter &parameter) const;
  /// Elements [begin, begin + count) of such a parameter, all of whose tensors
  /// lie one behind the other. Any thread may call it.
  void readPart(const plan::pb::Parameter &parameter, uint64_t begin,
                uint64_t count, float *destination) const;

  /// Names in the checkpoint that are derived from the configuration and hold
  /// no weight; they are skipped.
  const std::vector<std::string> &skipped() const { return skippedNames; }

  /// The files of the checkpoint; none of initial weights.
  std::vector<std::string> files() const {
    return reader ? reader->paths() : std::vector<std::string>();
  }

private:
  explicit WeightSource(const RunPlan &plan) : plan(plan) {}
  Status resolve(const plan::pb::Parameter &parameter,
                 std::map<std::string, std::string> &knownNames);

  RunPlan plan;
  uint64_t seed = 0;
  std::optional<SafetensorsReader> reader;
  /// Checkpoint tensor of the plan to its name in the file: a tied weight may
  /// be there under another of its names.
  std::map<std::string, std::string> stored;
  std::vector<std::string> skippedNames;
};

/// Shape of tensor `tensor` of `parameter` in checkpoints.
std::vector<uint64_t> tensorShape(const plan::pb::Parameter &parameter,
                                  int tensor);

/// Reorders the elements of tensor `tensor` of `parameter` from the
/// checkpoint's layout to the parameter's, or back.
enum class LayoutChange { ToParameter, ToCheckpoint };
void changeLayout(const plan::pb::Parameter &parameter, int tensor,
                  LayoutChange change, float *elements);

} // namespace gtp::rt

#endif // GTP_RT_WEIGHTSOURCE_H
