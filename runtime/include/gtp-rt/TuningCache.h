//===- TuningCache.h - Which algorithm computes a matrix product ----------===//
//
// cuBLASLt has many algorithms for a product, whose order in its own list is a
// guess. What has been measured is kept in a file, by library, GPU and product,
// so that a machine measures once and later runs compute the same bits. Nothing
// here needs a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_TUNINGCACHE_H
#define GTP_RT_TUNINGCACHE_H

#include "gtp-rt/JobPlace.h"
#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace gtp::rt {

/// A row-major operand of a product, without its address.
struct ProductMatrix {
  plan::pb::DType type = plan::pb::F32;
  uint64_t rows = 0, columns = 0, pitch = 0; ///< as stored, elements
  /// What every address it will have is a multiple of, bytes.
  uint64_t alignment = 4;
  bool transposed = false; ///< the product takes its transpose
};

/// d = a b; d += a b in some of its calls; or d = a b with a bias of d's type
/// added to each row.
struct ProductShape {
  ProductMatrix a, b, d;
  bool add = false;
  /// Bytes of scratch that every call has; algorithms that need more are none.
  uint64_t scratchBytes = 0;
  /// What every address of the bias is a multiple of, bytes; 0: there is none.
  uint64_t biasAlignment = 0;

  /// Names it in a tuning cache and in messages:
  /// "bf16:4096x6144:6144:256:T bf16:4096x4096:4096:256 f32:6144x4096:4096:256
  /// add scratch:33554432": of each of a, b and d its type, rows, columns,
  /// pitch, alignment, and T if transposed; "bias:256" is its alignment.
  std::string text() const;
};

/// An algorithm of cuBLASLt, as the attributes that it may be built from again.
struct ProductAlgorithm {
  enum Attribute {
    Id,
    Tile,
    Stages,
    SplitK,
    Reduction,
    Swizzle,
    Custom,
    InnerShape,
    ClusterShape
  };
  static constexpr size_t kAttributes = 9;
  static const std::array<const char *, kAttributes> &names();

  std::array<uint32_t, kAttributes> values = {};

  bool operator==(const ProductAlgorithm &other) const {
    return values == other.values;
  }
};

/// What measuring has found.
struct TunedProduct {
  /// None: the first of the library's list, which its attributes do not build.
  std::optional<ProductAlgorithm> algorithm;
  uint64_t ns = 0;      ///< a call takes
  uint64_t firstNs = 0; ///< and would, with the first of the library's list
};

/// Where a measurement holds.
struct TuningPlatform {
  std::string library; ///< "cuBLASLt 13.1.0"
  std::string gpu;     ///< "NVIDIA H200, 132 multiprocessors"
};

class TuningCache {
public:
  /// Reads `path`; a file that does not exist yet is an empty cache. Fails when
  /// it is not a tuning cache, naming the place.
  static StatusOr<TuningCache> open(const std::string &path);
  static StatusOr<TuningCache> parse(std::string_view text);

  /// Null when it was not measured there.
  const TunedProduct *find(const TuningPlatform &platform,
                           const std::string &product) const;
  void add(const TuningPlatform &platform, const std::string &product,
           const TunedProduct &tuned);
  size_t size() const { return entries.size(); }
  const std::string &path() const { return file; }

  /// The file's text: an entry a line, sorted.
  std::string text() const;
  /// Writes the file, and its folder if that is not there; it appears whole.
  Status save() const;

private:
  std::string file;
  std::map<std::tuple<std::string, std::string, std::string>, TunedProduct>
      entries;
};

/// $XDG_CACHE_HOME/gtp/tuning.json, else $HOME/.cache/gtp/tuning.json. Fails
/// where the environment has neither.
StatusOr<std::string> defaultTuningCache(const Environment &environment);

} // namespace gtp::rt

#endif // GTP_RT_TUNINGCACHE_H
