//===- Contents.h - What the bytes of a buffer hold -------------*- C++ -*-===//
//
// The abstract values of the checker. A tag says what bytes are; a piece says
// which part of that value they are, so that a gather into the wrong place or
// of the wrong length is not the weight it claims to be.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_CONTENTS_H
#define GTP_LIB_PLAN_CHECKER_CONTENTS_H

#include "Context.h"

#include <memory>
#include <vector>

namespace gtp::plan::check {

enum class Content : uint8_t {
  Undefined,
  OwnPiece, ///< each rank's piece of a gather to come; undefined around it
  Zero,
  Data,     ///< defined; an activation, a scalar, state
  Weight,   ///< a parameter's value
  Gradient, ///< contributions to a parameter's gradient
};

struct Tag {
  Content content = Content::Undefined;
  bool updated = false;                ///< Weight: after this step's update
  pb::DType dtype = pb::DTYPE_INVALID; ///< Weight, Gradient
  uint32_t parameter = 0;              ///< Weight, Gradient
  AxisMask cut = 0; ///< Weight, Gradient: each rank has its shard over these
  AxisMask partial = 0; ///< Data, Gradient: the sum over these is the value
  uint32_t parts = 0;   ///< Gradient, sums in Data: a list of `PartTable`
  bool scale = false;   ///< Data: the factor of every gradient
  /// Data: equal for equal computations. OwnPiece: which of the interpreter's.
  uint64_t id = 0;

  bool operator==(const Tag &other) const {
    return sameButId(other) && id == other.id;
  }
  bool sameButId(const Tag &other) const {
    return content == other.content && updated == other.updated &&
           dtype == other.dtype && parameter == other.parameter &&
           cut == other.cut && partial == other.partial &&
           parts == other.parts && scale == other.scale;
  }
};

/// Columns [begin, end) of every row.
struct Band {
  uint64_t begin = 0;
  uint64_t end = 0;
  Tag tag;
  uint64_t base = 0;
};

/// Rows of `pitch` bytes, counted from the start of the buffer, whose columns
/// were written apart. Bands cover the row.
struct Bands {
  uint64_t pitch = 0;
  std::vector<Band> bands;
};

struct Piece {
  uint64_t begin = 0;
  uint64_t end = 0;
  Tag tag;
  uint64_t base = 0;                  ///< where `begin` lies in the value
  std::shared_ptr<const Bands> bands; ///< instead of the tag
};

/// A strided range of a buffer, in bytes.
struct View {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t width = 0; ///< of a row
  uint64_t pitch = 0; ///< 0: dense

  static View of(const Touch &touch);
};

/// What a view holds, as one value.
struct Read {
  bool defined = true;
  uint64_t undefinedAt = 0; ///< first byte in the buffer, when not defined
  /// Weight and Gradient only when all of the view is that, zeros behind it
  /// apart; Data when everything is data or zero.
  Content content = Content::Zero;
  bool mixed = false; ///< a Weight or Gradient and something else
  Tag tag;            ///< of a Weight or Gradient
  uint64_t base = 0;  ///< where the view begins in that value
  uint64_t valid = 0; ///< bytes before the zeros
  AxisMask partial = 0;
  bool partialDiffers = false; ///< between parts of the view
  uint32_t parts = 0;          ///< of Data that is one sum
  bool scale = false;          ///< Data: all of it is the factor of gradients
  uint64_t id = 0;
  /// Identities of the values that Data consists of.
  std::vector<uint64_t> sources;
};

uint64_t mixHash(uint64_t a, uint64_t b);

/// Contents of one buffer.
class Contents {
public:
  /// Everything becomes `tag`.
  void reset(uint64_t size, const Tag &tag);
  void write(uint64_t begin, uint64_t end, const Tag &tag, uint64_t base);
  void write(const View &view, const Tag &tag);
  Read read(const View &view) const;
  /// The pieces of [begin, end), clipped.
  std::vector<Piece> slice(uint64_t begin, uint64_t end) const;
  void put(const Piece &piece);

  size_t pieceCount() const { return pieces.size(); }
  /// Replaces every tag that has parts. Bands have none: sums and gradients are
  /// dense.
  template <typename Function>
  void transform(Function &&function) {
    for (Piece &piece : pieces)
      if (piece.tag.parts != 0)
        function(piece.tag);
  }
  /// Equal when everything but ids is.
  uint64_t fingerprint() const;

private:
  /// In order, without gaps.
  std::vector<Piece> pieces;
};

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_CONTENTS_H
