//===- Order.h - Rules that happens-before decides --------------*- C++ -*-===//

#ifndef GTP_LIB_PLAN_CHECKER_ORDER_H
#define GTP_LIB_PLAN_CHECKER_ORDER_H

#include "Context.h"
#include "HappensBefore.h"

namespace gtp::plan::check {

/// Rule `race`.
void checkRaces(Context &context, const RegionInfo &region,
                const HappensBefore &order);
/// Rules `collective-order` and `collective-ctas`.
void checkCollectives(Context &context, const RegionInfo &region,
                      const HappensBefore &order);

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_ORDER_H
