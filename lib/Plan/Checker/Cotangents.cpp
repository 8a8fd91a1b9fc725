//===- Cotangents.cpp - Which incoming gradients go with a use ------------===//

#include "Cotangents.h"

#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

static bool isBand(const pb::Operand &operand) {
  return rowPitch(operand) != rowElements(operand);
}

/// First column of a band of wider rows; 0 of whole rows.
static uint64_t columnOf(const pb::Operand &operand) {
  return isBand(operand)
             ? operand.offset() / dtypeSize(operand.dtype()) % rowPitch(operand)
             : 0;
}

void Cotangents::add(uint32_t parameter, const Touch &touch,
                     const Read &value) {
  if (value.sources.size() != 1)
    return use(value);
  const pb::Operand &operand = *touch.operand;
  added[parameter].insert(
      {value.sources.front(), columnOf(operand), isBand(operand)});
}

void Cotangents::contribute(const Use &use, const Touch &touch,
                            const Read &gradient) {
  contributed.emplace(
      use, Gradient{gradient.id,
                    columnOf(*touch.operand),
                    {gradient.sources.begin(), gradient.sources.end()}});
}

std::vector<const Cotangents::Gradient *>
Cotangents::gradientsOf(uint32_t parameter) const {
  std::vector<const Gradient *> result;
  for (auto it = contributed.lower_bound({parameter, 0});
       it != contributed.end() && it->first.parameter == parameter; ++it)
    result.push_back(&it->second);
  return result;
}

void Cotangents::check(Context &c) const {
  for (const Pass &pass : passed) {
    std::vector<const Gradient *> own = gradientsOf(pass.parameter);
    bool known = std::any_of(own.begin(), own.end(), [&](const Gradient *g) {
      return g->id == pass.gradient;
    });
    // Without any the parameter is frozen, or that is found elsewhere.
    if (!own.empty() && !known)
      c.failAt("exactly-once", pass.place,
               " passes on another gradient than the contributions to that "
               "of " +
                   c.parameterText(pass.parameter) + " are computed from");
  }
  for (const auto &[parameter, additions] : added)
    checkAdded(c, parameter, additions);
}

/// Whether it is known from which gradient the parameter has its own: the value
/// was made by one use of a parameter with one contribution, and serves nothing
/// else; and of a band of it, which band of the gradient is whose.
bool Cotangents::isCertain(const Addition &addition) const {
  auto maker = makers.find(addition.source);
  if (maker == makers.end() || consumed.count(addition.source) ||
      contributed.count(maker->second) != 1)
    return false;
  const Gradient &whole = contributed.find(maker->second)->second;
  return !addition.band || whole.sources.size() > 1 ||
         (whole.sources.size() == 1 &&
          joined.count({*whole.sources.begin(), addition.column}));
}

bool Cotangents::matches(const Addition &addition, const Gradient &whole,
                         const Gradient &own) const {
  if (addition.band && whole.sources.size() == 1)
    return own.column == 0 &&
           own.sources ==
               joined.find({*whole.sources.begin(), addition.column})->second;
  return own.column == addition.column &&
         std::includes(whole.sources.begin(), whole.sources.end(),
                       own.sources.begin(), own.sources.end());
}

void Cotangents::checkAdded(Context &c, uint32_t parameter,
                            const std::set<Addition> &additions) const {
  std::vector<const Gradient *> own = gradientsOf(parameter);
  if (own.size() != additions.size())
    return; // frozen, or a contribution is found missing elsewhere
  for (const Addition &addition : additions) {
    if (!isCertain(addition))
      return;
    const Gradient &whole =
        contributed.find(makers.find(addition.source)->second)->second;
    auto match = std::find_if(own.begin(), own.end(), [&](const Gradient *g) {
      return matches(addition, whole, *g);
    });
    if (match == own.end())
      return c.fail("exactly-once",
                    "the contributions to the gradient of " +
                        c.parameterText(parameter) +
                        " are computed from other gradients than that of what "
                        "it was added to");
    own.erase(match);
  }
}
