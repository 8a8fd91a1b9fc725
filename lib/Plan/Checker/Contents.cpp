//===- Contents.cpp - What the bytes of a buffer hold ---------------------===//

#include "Contents.h"

#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

uint64_t check::mixHash(uint64_t a, uint64_t b) {
  // The finalizer of SplitMix64 on a running state.
  uint64_t z = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

View View::of(const Touch &touch) {
  const pb::Operand &operand = *touch.operand;
  View view{touch.begin, touch.end, touch.end - touch.begin, 0};
  // Over several iterations or ranks a view is all bytes that any of them uses.
  bool moves =
      operand.iteration_stride() != 0 || !operand.rank_strides().empty();
  if (!moves && !isDense(operand)) {
    view.width = rowElements(operand) * dtypeSize(operand.dtype());
    view.pitch = rowPitch(operand) * dtypeSize(operand.dtype());
  }
  return view;
}

/// Bases only matter for values that have places.
static uint64_t baseOf(const Tag &tag, uint64_t base) {
  return tag.content == Content::Undefined || tag.content == Content::Zero
             ? 0
             : base;
}

static uint64_t advance(const Tag &tag, uint64_t base, uint64_t bytes) {
  return baseOf(tag, base + bytes);
}

/// The part of a piece from `begin` to `end`.
static Piece clip(Piece piece, uint64_t begin, uint64_t end) {
  if (begin > piece.begin) {
    piece.base = advance(piece.tag, piece.base, begin - piece.begin);
    piece.begin = begin;
  }
  piece.end = std::min(piece.end, end);
  return piece;
}

void Contents::reset(uint64_t size, const Tag &tag) {
  pieces.assign(1, Piece{0, size, tag, 0, nullptr});
}

void Contents::write(uint64_t begin, uint64_t end, const Tag &tag,
                     uint64_t base) {
  if (begin < end)
    put(Piece{begin, end, tag, baseOf(tag, base), nullptr});
}

void Contents::put(const Piece &piece) {
  auto first = std::lower_bound(
      pieces.begin(), pieces.end(), piece.begin,
      [](const Piece &p, uint64_t address) { return p.end <= address; });
  auto last = std::lower_bound(
      first, pieces.end(), piece.end,
      [](const Piece &p, uint64_t address) { return p.begin < address; });
  // At most: what is left before, the piece, what is left behind.
  Piece replacement[3];
  int count = 0;
  if (first != last && first->begin < piece.begin)
    replacement[count++] = clip(*first, first->begin, piece.begin);
  replacement[count++] = piece;
  if (first != last && std::prev(last)->end > piece.end)
    replacement[count++] =
        clip(*std::prev(last), piece.end, std::prev(last)->end);
  size_t at = static_cast<size_t>(first - pieces.begin());
  pieces.insert(pieces.erase(first, last), replacement, replacement + count);

  // Join neighbours that continue each other.
  size_t from = at ? at - 1 : 0;
  size_t to = std::min(pieces.size(), at + static_cast<size_t>(count) + 1);
  for (size_t i = from + 1; i < to;) {
    Piece &a = pieces[i - 1];
    const Piece &b = pieces[i];
    if (!a.bands && !b.bands && a.tag == b.tag &&
        advance(a.tag, a.base, a.end - a.begin) == b.base) {
      a.end = b.end;
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
      --to;
    } else {
      ++i;
    }
  }
}

std::vector<Piece> Contents::slice(uint64_t begin, uint64_t end) const {
  std::vector<Piece> result;
  auto it = std::lower_bound(
      pieces.begin(), pieces.end(), begin,
      [](const Piece &p, uint64_t address) { return p.end <= address; });
  for (; it != pieces.end() && it->begin < end; ++it)
    result.push_back(clip(*it, begin, end));
  return result;
}

/// Puts a tag on columns [begin, end) of the bands.
static void paint(Bands &rows, uint64_t begin, uint64_t end, const Tag &tag) {
  std::vector<Band> result;
  for (const Band &band : rows.bands) {
    if (band.begin < begin)
      result.push_back(
          {band.begin, std::min(band.end, begin), band.tag, band.base});
    if (band.begin <= begin && begin < band.end)
      result.push_back({begin, end, tag, 0});
    if (band.end > end) {
      uint64_t from = std::max(band.begin, end);
      result.push_back({from, band.end, band.tag,
                        advance(band.tag, band.base, from - band.begin)});
    }
  }
  rows.bands = std::move(result);
}

void Contents::write(const View &view, const Tag &tag) {
  if (view.pitch == 0)
    return write(view.begin, view.end, tag, 0);
  uint64_t column = view.begin % view.pitch;
  uint64_t begin = view.begin - column;
  uint64_t size = pieces.back().end;
  uint64_t rows = (view.end - view.begin - view.width) / view.pitch + 1;
  uint64_t end = std::min(size, begin + rows * view.pitch);
  std::vector<Piece> before = slice(begin, end);
  auto banded = std::make_shared<Bands>();
  banded->pitch = view.pitch;
  if (before.size() == 1 && before[0].bands &&
      before[0].bands->pitch == view.pitch) {
    *banded = *before[0].bands;
  } else if (before.size() == 1 && !before[0].bands &&
             before[0].tag.content <= Content::Data) {
    banded->bands.push_back({0, view.pitch, before[0].tag, 0});
  } else {
    // Rows that differ: what lies between the columns written counts as
    // undefined.
    banded->bands.push_back({0, view.pitch, Tag(), 0});
  }
  if (column + view.width > view.pitch)
    return write(begin, end, Tag(), 0);
  paint(*banded, column, column + view.width, tag);
  put(Piece{begin, end, Tag(), 0, std::move(banded)});
}

namespace {

/// Adds up what a view sees, piece after piece.
class Reader {
public:
  explicit Reader(Read &read) : result(read) {}

  void see(const Tag &tag, uint64_t base, uint64_t bytes, uint64_t address);

private:
  void seeValue(const Tag &tag, uint64_t base, uint64_t bytes);

  Read &result;
  bool any = false;
  bool anyData = false;
  bool ended = false; ///< zeros came after a weight or gradient
};

void Reader::see(const Tag &tag, uint64_t base, uint64_t bytes,
                 uint64_t address) {
  uint64_t what = mixHash(static_cast<uint64_t>(tag.content), tag.id);
  what = mixHash(what, uint64_t(tag.parameter) * 2 + tag.updated);
  result.id = mixHash(mixHash(mixHash(result.id, what), base), bytes);
  bool value = result.content >= Content::Weight;
  switch (tag.content) {
  case Content::Undefined:
  case Content::OwnPiece:
    if (result.defined)
      result.undefinedAt = address;
    result.defined = false;
    break;
  case Content::Zero:
    ended |= value;
    break;
  case Content::Data:
    result.mixed |= value;
    result.partialDiffers |= anyData && result.partial != tag.partial;
    result.partial |= tag.partial;
    if (!value)
      result.content = Content::Data;
    result.parts = anyData && result.parts != tag.parts ? 0 : tag.parts;
    result.scale = tag.scale && (result.scale || !anyData);
    if (result.sources.empty() || result.sources.back() != tag.id)
      result.sources.push_back(tag.id);
    anyData = true;
    break;
  case Content::Weight:
  case Content::Gradient:
    seeValue(tag, base, bytes);
    break;
  }
  any = true;
}

void Reader::seeValue(const Tag &tag, uint64_t base, uint64_t bytes) {
  if (!any) {
    result.content = tag.content;
    result.tag = tag;
    result.base = base;
    result.partial = tag.partial;
    result.valid = bytes;
  } else if (result.content >= Content::Weight && !ended && result.tag == tag &&
             base == result.base + result.valid) {
    result.valid += bytes;
  } else {
    result.mixed = true;
    result.content = tag.content;
    result.tag = tag;
    result.partialDiffers |= result.partial != tag.partial;
    result.partial |= tag.partial;
  }
}

} // namespace

Read Contents::read(const View &view) const {
  Read result;
  Reader reader(result);
  auto it = std::lower_bound(
      pieces.begin(), pieces.end(), view.begin,
      [](const Piece &p, uint64_t address) { return p.end <= address; });
  for (; it != pieces.end() && it->begin < view.end; ++it) {
    if (!it->bands) {
      Piece piece = clip(*it, view.begin, view.end);
      reader.see(piece.tag, piece.base, piece.end - piece.begin, piece.begin);
      continue;
    }
    // Columns of the same rows are told apart; any other view sees all of them.
    uint64_t pitch = it->bands->pitch;
    uint64_t begin = 0, end = pitch;
    if (view.pitch == pitch && view.begin % pitch + view.width <= pitch) {
      begin = view.begin % pitch;
      end = begin + view.width;
    }
    for (const Band &band : it->bands->bands) {
      uint64_t from = std::max(begin, band.begin), to = std::min(end, band.end);
      if (from < to)
        reader.see(band.tag, advance(band.tag, band.base, from - band.begin),
                   to - from, std::max(it->begin, view.begin));
    }
  }
  return result;
}

uint64_t Contents::fingerprint() const {
  uint64_t hash = 0;
  auto add = [&](uint64_t begin, uint64_t end, const Tag &tag, uint64_t base) {
    for (uint64_t value :
         {begin, end, base, static_cast<uint64_t>(tag.content),
          static_cast<uint64_t>(tag.updated), static_cast<uint64_t>(tag.dtype),
          static_cast<uint64_t>(tag.parameter), static_cast<uint64_t>(tag.cut),
          static_cast<uint64_t>(tag.partial), static_cast<uint64_t>(tag.parts),
          static_cast<uint64_t>(tag.scale)})
      hash = mixHash(hash, value);
  };
  for (const Piece &piece : pieces) {
    add(piece.begin, piece.end, piece.tag, piece.base);
    if (!piece.bands)
      continue;
    add(piece.bands->pitch, 0, Tag(), 0);
    for (const Band &band : piece.bands->bands)
      add(band.begin, band.end, band.tag, band.base);
  }
  return hash;
}
