//===- OrderGraph.h - Which operation happens before which ----------------===//
//
// Operations of one region in issue order, each on a stream, with extra edges
// between streams. An operation happens before another when a path of stream
// order and edges leads from one to the other: nothing else may be relied on.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLANNING_ORDERGRAPH_H
#define GTP_PLANNING_ORDERGRAPH_H

#include "gtp/Support/Status.h"

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gtp::planning {

/// Position of an operation in issue order.
using OpIndex = uint32_t;

/// Happens-before over operations that are added in issue order. Edges run from
/// an earlier to a later operation, so the order is acyclic by construction.
///
/// `happensBefore` is answered from vector clocks that are kept as operations
/// arrive: an operation's edges come with it.
class OrderGraph {
public:
  explicit OrderGraph(unsigned numStreams = 1) : streams(numStreams) {}

  /// Appends an operation that runs on `stream` after the operations `after`
  /// (and after all earlier ones of its stream). Both must exist already.
  OpIndex addOp(unsigned stream, const std::vector<OpIndex> &after = {});

  unsigned numStreams() const { return streams.size(); }
  OpIndex size() const { return ops.size(); }
  unsigned stream(OpIndex op) const { return ops[op].stream; }
  /// How many operations of its stream come before it.
  uint32_t position(OpIndex op) const { return ops[op].position; }
  /// The edges as they were given.
  const std::vector<OpIndex> &after(OpIndex op) const { return ops[op].after; }
  /// The operation before it on its stream, or `op` itself when it is the
  /// first.
  OpIndex previous(OpIndex op) const { return ops[op].previous; }
  /// Operations of `stream` in order.
  const std::vector<OpIndex> &onStream(unsigned stream) const {
    return streams[stream];
  }

  /// Strictly: no operation happens before itself.
  bool happensBefore(OpIndex a, OpIndex b) const {
    return a != b && clock(b, ops[a].stream) > ops[a].position;
  }

  /// How many operations of `stream` happen before `op` or are it.
  uint32_t clock(OpIndex op, unsigned stream) const {
    return clocks[size_t(op) * numStreams() + stream];
  }

private:
  struct Op {
    unsigned stream;
    uint32_t position;
    OpIndex previous;
    std::vector<OpIndex> after;
  };
  std::vector<Op> ops;
  std::vector<std::vector<OpIndex>> streams;
  std::vector<uint32_t> clocks; // a row of numStreams an operation
};

/// Which waits a region needs so that everything its edges order is ordered,
/// and nothing more: the transitive reduction.
struct EventProblem {
  explicit EventProblem(OrderGraph order) : order(std::move(order)) {}

  struct Solution {
    /// For each operation the operations of other streams whose completion it
    /// waits for, ascending.
    std::vector<std::vector<OpIndex>> waits;
  };
  struct Counts {
    uint64_t events = 0; ///< operations that someone waits for
    uint64_t waits = 0;
  };

  Status check() const;
  Solution solve() const;
  /// Rebuilds happens-before from the waits alone: every edge holds, no order
  /// was added, no wait can be dropped.
  Status verify(const Solution &solution) const;

  /// An event for each operation with an edge into another stream, a wait for
  /// each such edge.
  Counts naiveCounts() const;
  static Counts counts(const Solution &solution);

  /// Deterministic text: `order streams=2`, `op 1 stream=1 after=0`, and with a
  /// solution `waits 1 on=0`.
  std::string print(const Solution *solution = nullptr) const;

  OrderGraph order;
};

/// A problem and, when the text has one, a solution.
struct ParsedEventProblem {
  EventProblem problem;
  bool solved = false;
  EventProblem::Solution solution;
};
StatusOr<ParsedEventProblem> parseEventProblem(const std::string &text);

} // namespace gtp::planning

#endif // GTP_PLANNING_ORDERGRAPH_H
