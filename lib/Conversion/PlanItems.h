//===- PlanItems.h - A plan as calls of the runtime's builder -------------===//
//
// Each entry of a plan's tables and each operation is a call of
// gtp-rt/PlanBuilder.h. What may differ between layers of one class (buffers,
// events, parameters, names, addresses) is a slot of its text; two calls whose
// text is the same but for slots have the same key.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_CONVERSION_PLANITEMS_H
#define GTP_LIB_CONVERSION_PLANITEMS_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <string>
#include <vector>

namespace gtp {

/// A place of a call's text whose value may differ from layer to layer.
struct Slot {
  enum Kind {
    Name,      ///< `text`
    Number,    ///< `values[0]`
    Buffer,    ///< index in the plan
    Parameter, ///< index in the plan
    Signals,   ///< the event recorded, or no value
    After,     ///< events waited for
    Event,     ///< one event
  };
  Kind kind;
  std::string text; ///< the name, or what a field for the value is named after
  std::vector<uint64_t> values;

  bool operator==(const Slot &other) const {
    return values == other.values && (kind != Name || text == other.text);
  }
};

/// Text with slots: piece, slot, piece, slot, ..., piece.
struct SlotText {
  std::vector<std::string> pieces = {""};
  std::vector<Slot> slots;

  SlotText &operator+=(const std::string &text) {
    pieces.back() += text;
    return *this;
  }
  SlotText &operator+=(Slot slot) {
    slots.push_back(std::move(slot));
    pieces.emplace_back();
    return *this;
  }
};

/// A call: `callee(arguments...)`.
struct Item {
  std::string callee;
  std::vector<SlotText> arguments;

  /// The text without the slots' values.
  std::string key() const;
};

/// A program's region.
struct RegionItems {
  Item begin;
  std::string kind; ///< "BODY"
  std::vector<Item> operations;
};
struct ProgramItems {
  std::string kind; ///< "TRAIN_STEP"
  std::vector<Item> buffers, ios;
  std::vector<RegionItems> regions;
};

/// A plan as calls, in the order in which PlanToProto.cpp makes it.
struct PlanItems {
  /// Fields without slots, by their setters.
  std::vector<Item> header, communicators, streams;
  std::vector<Item> parameters;
  std::vector<ProgramItems> programs;
  /// Constants as text, "1.0, 0.5".
  std::vector<std::string> lists;
  /// Identifiers of streams and communicators, by index.
  std::vector<std::string> streamNames, communicatorNames;
};

/// `buffers` says how many of the plan's buffers each program declares, the
/// first one those of all. Fails on a field that no call sets.
StatusOr<PlanItems> itemsOf(const plan::pb::Plan &plan,
                            const std::vector<int> &buffers);

} // namespace gtp

#endif // GTP_LIB_CONVERSION_PLANITEMS_H
