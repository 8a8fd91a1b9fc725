//===- Profile.h - What a device and its network cost ---------------------===//
//
// All prices come from a data file: one is built in for each named target, and
// `--target=FILE.json` reads another. Times are nanoseconds, sizes bytes.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_MACHINE_PROFILE_H
#define GTP_MACHINE_PROFILE_H

#include "gtp/Support/Status.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gtp::machine {

enum class Resource { Matrix, Vector, Memory };
enum class DType { F64, F32, BF16 };
enum class CollectiveKind { AllGather, ReduceScatter, AllReduce, AllToAll };
enum class Transport { Auto, CopyEngine, Symmetric, Ring, Host, Pairwise };

std::string_view name(DType dtype);
std::string_view name(CollectiveKind kind);
std::string_view name(Transport transport);

/// Whether transfers by it run on multiprocessors that compute then lacks; a
/// reduction's sum behind copy engines is short.
constexpr bool holdsMultiprocessors(Transport transport) {
  return transport == Transport::Symmetric || transport == Transport::Ring ||
         transport == Transport::Pairwise;
}

/// The ranks of one collective, as the network sees them.
struct Group {
  int64_t size = 1;
  /// Of the group, in one link domain, where that is fewest.
  int64_t ranksPerDomain = 1;
  bool spansDomains() const { return ranksPerDomain < size; }
};

/// What a kernel does; `kernel` is the registry's name, for those that the
/// profile prices by name (attention), or a variant of it
/// ("attention_grad.fast") that is the kernel itself to a profile that does not
/// know it.
struct KernelWork {
  std::string_view kernel;
  Resource resource = Resource::Memory;
  DType dtype = DType::F32;
  int64_t flops = 0;
  int64_t bytes = 0;
  /// Of the call, as gtp/Plan/KernelSignature.h writes it; needed where the
  /// profile has measured times.
  std::string_view signature = {};
};

/// Local dimensions that scratch sizes are made of. What a kernel lacks is 0.
struct KernelDims {
  int64_t batch = 0;    ///< sequences
  int64_t sequence = 0; ///< of the queries
  int64_t keys = 0;     ///< sequence of keys and values
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
};

/// Price of one collective by one transport.
struct CollectivePrice {
  Transport transport = Transport::Host;
  int64_t durationNs = 0; ///< alone, without the copy of the rank's own shard
  int64_t ownCopyNs = 0;  ///< that copy; all_gather into a reused slot only
  /// Whether that copy is an operation of its own, before the gather.
  bool copiesApart = false;
  int64_t contentionNs =
      0; ///< what it adds to compute that runs beside all of it
  int64_t slowdownPermille = 0; ///< how much longer it takes beside compute
  bool holdsMultiprocessors = false;
};

class Profile {
public:
  /// A built-in name, else a file. `where` of errors is the argument.
  static StatusOr<Profile> load(const std::string &nameOrFile);
  /// Parses and validates a profile's text.
  /// One with a base has what its text leaves out from that.
  static StatusOr<Profile> parse(std::string_view text);
  /// "cpu", "gb200", "h100", "h200".
  static std::vector<std::string> builtinNames();
  static std::optional<std::string_view> builtinText(std::string_view name);

  Status validate() const;

  /// Time of one kernel in a stream of kernels, launch included.
  int64_t kernelNs(const KernelWork &work) const;
  /// How much longer, per mille, a call takes on the multiprocessors that a
  /// collective which holds the reserve leaves it: a matrix product may need
  /// more waves of tiles. 0 for other kernels.
  int64_t crowdedPermille(std::string_view kernel,
                          std::string_view signature) const;
  /// A copy on the device that moves `bytes` (read once, written once).
  int64_t copyNs(int64_t bytes) const;

  /// Ranks of an axis of `degree`, `stride` ranks apart, in a job of `ranks`.
  Group group(int64_t degree, int64_t stride, int64_t ranks) const;
  /// Transports that can carry `kind` over `group`, in the file's order.
  std::vector<Transport> transports(CollectiveKind kind,
                                    const Group &group) const;
  /// `bytesFull` is the size of the whole gathered (or unreduced) value. With
  /// Auto, the transport whose duration and contention together are least.
  StatusOr<CollectivePrice>
  collective(CollectiveKind kind, int64_t bytesFull, const Group &group,
             Transport transport = Transport::Auto) const;
  /// The two numbers alone; 0 for a group of one, and when no transport fits.
  int64_t collectiveNs(CollectiveKind kind, int64_t bytesFull,
                       const Group &group,
                       Transport transport = Transport::Auto) const;
  int64_t contentionNs(CollectiveKind kind, int64_t bytesFull,
                       const Group &group,
                       Transport transport = Transport::Auto) const;

  /// Upper bound of the scratch of a call, of a kernel or a variant of one; 0
  /// for kernels without any.
  int64_t scratchBytes(std::string_view kernel, const KernelDims &dims) const;

  /// What a process holds besides the arena.
  int64_t overheadBytes(int64_t communicators) const;

  // What the file says, in its order; docs/target-profiles.md explains each
  // number. Sources are in the file alone.
  struct Rate {
    std::string kernel; ///< empty: any kernel of the class
    DType dtype = DType::F32;
    double tflops = 0; ///< sustained, of a large call
    int64_t rampNs =
        0; ///< what a call loses to filling and draining the device
  };
  struct Link {
    Transport transport = Transport::Host;
    CollectiveKind kind = CollectiveKind::AllGather;
    int64_t latencyNs = 0;
    int64_t latencyPerRankNs = 0; ///< for each rank above two
    double gbPerS = 0;            ///< bytes received a rank and second
    int64_t contentionPermille = 0;
    int64_t slowdownPermille = 0;
    bool acrossDomains = false; ///< can leave a link domain
  };
  /// What gtp-run has measured of one call.
  struct Measured {
    int64_t calls = 1; ///< a step
    int64_t aloneNs = 0, besideNs = 0, besideMeanNs = 0;
  };
  struct MeasuredKernel : Measured {
    std::string kernel, signature;
    /// In a step without collectives; 0 where there was none.
    int64_t sustainedNs = 0;
    /// Of its mean time as planned, beside gathers and other collectives.
    int64_t besideGathersNs = 0, besideReductionsNs = 0;
  };
  struct MeasuredCollective : Measured {
    CollectiveKind kind = CollectiveKind::AllGather;
    Transport transport = Transport::Host;
    int64_t ranks = 0, bytes = 0; ///< of the full value
  };
  struct ScratchTerm {
    int64_t bytes = 0; ///< times the product of `dims`
    std::vector<std::string> dims;
  };
  struct Scratch {
    std::string kernel;
    int64_t constantBytes = 0;
    std::vector<ScratchTerm> terms; ///< summed
  };

  std::string profileName;
  std::string file; ///< that it was read from; "" of one that is built in
  /// "profile 'h200'", and of which file, for messages.
  std::string title() const {
    return "profile '" + profileName + "'" +
           (file.empty() ? "" : " of " + file);
  }
  std::string text; ///< the bytes that were parsed, for the plan's hash of them
  int64_t memoryBytes = 0;
  int64_t contextBytes = 0, communicatorBytes = 0, graphBytes = 0;
  int64_t launchNs = 0;
  double memoryGbPerS = 0;     ///< read and written together
  double vectorEfficiency = 0; ///< of that, for elementwise kernels
  double vectorTflops = 0;
  std::vector<Rate> rates;
  /// Ranks with direct links to each other; 0: all.
  int64_t ranksPerLinkDomain = 0;
  /// Speed of a gather and a reduction that run together, per mille.
  int64_t sharedLinkPermille = 1000;
  int64_t crossDomainLatencyNs = 0;
  double crossDomainGbPerS = 0; ///< a rank
  std::vector<Link> links;
  std::vector<Scratch> scratch;
  std::vector<MeasuredKernel> measuredKernels; ///< by kernel and signature
  std::vector<MeasuredCollective> measuredCollectives;
  /// The measured plan's step without its collectives and without events
  /// between its operations, and with them; 0 is not measured.
  int64_t withoutCollectivesNs = 0, untimedNs = 0;
  int64_t multiprocessors = 0;
  int64_t ctaReserve =
      0; ///< multiprocessors that collectives running together may hold
  /// Of a matrix product's result, what a multiprocessor makes at a time; the
  /// library takes the one that leaves the fewest idle.
  struct Tile {
    int64_t rows = 0, columns = 0;
  };
  std::vector<Tile> tiles;

private:
  /// Time over size of like calls, through what was measured of some.
  class Curve {
  public:
    void add(double size, double ns);
    /// Straight between the nearest sizes, from half of the least (a call
    /// without work takes `zeroNs`) to twice the largest; else nothing.
    std::optional<double> at(double size, double zeroNs) const;

  private:
    struct Point {
      double size, sumNs, count;
      double ns() const { return sumNs / count; }
    };
    std::vector<Point> points; ///< ascending
  };

  /// From the measured calls; once all is read.
  void learn();
  void learnContention();
  int64_t measuredNs(const MeasuredKernel &entry) const;
  int64_t modelledNs(const KernelWork &work) const;
  std::optional<double> likeMeasured(std::string_view kernel,
                                     std::string_view signature) const;
  std::optional<double> likeMeasured(CollectiveKind kind, Transport transport,
                                     int64_t ranks, int64_t bytes) const;

  std::map<std::string, Curve> curves;
  /// What sustained times lack: behind each kernel, and of each.
  int64_t betweenNs = 0;
  double stretch = 1;
  /// Contention of the measured step over what the links and tiles say.
  double contentionScale = 1;
};

} // namespace gtp::machine

#endif // GTP_MACHINE_PROFILE_H
