//===- Cotangents.h - Which incoming gradients go with a use ----*- C++ -*-===//
//
// All kernels that are about one use of a parameter read one gradient, that of
// the use's result. So what is passed on and what is contributed must come from
// the same, and a parameter that was only added to a value has contributions
// from the gradient that the value's producer contributes from, in the same
// columns: a bias from that of its linear.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_COTANGENTS_H
#define GTP_LIB_PLAN_CHECKER_COTANGENTS_H

#include "Contents.h"
#include "Context.h"

#include <map>
#include <set>
#include <vector>

namespace gtp::plan::check {

class Cotangents {
public:
  /// A use of a parameter; `identity` is that of the activation that it reads.
  struct Use {
    uint32_t parameter = 0;
    uint64_t identity = 0;
    bool operator<(const Use &other) const {
      return parameter != other.parameter ? parameter < other.parameter
                                          : identity < other.identity;
    }
  };

  /// A forward kernel made the value `source` with the parameter.
  void make(uint64_t source, const Use &use) { makers.emplace(source, use); }
  /// An operation reads a value other than to add a parameter to it.
  void use(const Read &value) {
    consumed.insert(value.sources.begin(), value.sources.end());
  }
  /// A forward kernel adds the parameter to what the touch reads.
  void add(uint32_t parameter, const Touch &touch, const Read &value);
  /// A value is made of others, side by side; one begins at `column`.
  void join(uint64_t source, uint64_t column, const Read &part) {
    joined[{source, column}].insert(part.sources.begin(), part.sources.end());
  }
  /// A kernel makes a contribution for the use from what the touch reads.
  void contribute(const Use &use, const Touch &touch, const Read &gradient);
  /// A kernel about the parameter passes the gradient on to what its use read.
  void pass(uint32_t parameter, const Read &gradient, OperationPlace place) {
    passed.push_back({parameter, gradient.id, place});
  }

  /// Rule `exactly-once`, after one iteration of the body.
  void check(Context &context) const;

private:
  struct Addition {
    uint64_t source;
    uint64_t column; ///< elements
    bool band;       ///< not whole rows
    bool operator<(const Addition &other) const {
      return source != other.source ? source < other.source
                                    : column < other.column;
    }
  };
  struct Gradient {
    uint64_t id;
    uint64_t column; ///< elements
    std::set<uint64_t> sources;
  };
  struct Pass {
    uint32_t parameter;
    uint64_t gradient;
    OperationPlace place;
  };

  bool isCertain(const Addition &addition) const;
  bool matches(const Addition &addition, const Gradient &whole,
               const Gradient &own) const;
  void checkAdded(Context &context, uint32_t parameter,
                  const std::set<Addition> &additions) const;
  std::vector<const Gradient *> gradientsOf(uint32_t parameter) const;

  std::map<uint64_t, Use> makers;
  std::set<uint64_t> consumed;
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint64_t>> joined;
  std::map<uint32_t, std::set<Addition>> added;
  std::multimap<Use, Gradient> contributed;
  std::vector<Pass> passed;
};

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_COTANGENTS_H
