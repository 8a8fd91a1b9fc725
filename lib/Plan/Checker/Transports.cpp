//===- Transports.cpp - Rule `transport` ----------------------------------===//
//
// How bytes move must compute what the collective means, and the communicator
// must be made for it.
//
//===----------------------------------------------------------------------===//

#include "Structure.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Transport.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;
using pb::Collective;
using pb::Communicator;

/// Of a collective whose shapes have been checked.
Status check::checkTransport(const Context &c, const Collective &collective) {
  const Communicator &communicator =
      c.plan.communicators(static_cast<int>(collective.communicator()));
  const uint64_t ranks = groupSize(c.plan.mesh(), communicator);
  const Collective::Transport transport = collective.transport();
  auto error = [&](const std::string &text) {
    return Status::error("goes " + text);
  };
  const std::string by = "by " + Collective::Transport_Name(transport);
  std::string why =
      whyNotBy(transport, CollectiveMeaning::of(collective, ranks));
  if (!why.empty())
    return error(why);
  std::string name =
      ", but communicator " + std::to_string(collective.communicator());
  if (needsWindow(transport)) {
    if (!communicator.needs_window())
      return error(by + name + " has no window");
    if (communicator.spans_nodes())
      return error(by + name + " spans nodes, and windows do not");
  }
  bool zero = communicator.cta_policy() == Communicator::ZERO;
  if (transport == Collective::COPY_ENGINE && !zero)
    return error(by + name + " has the CTA policy " +
                 Communicator::CtaPolicy_Name(communicator.cta_policy()) +
                 ", expected ZERO");
  if (transport == Collective::SYMMETRIC && zero &&
      collective.kind() == Collective::ALL_GATHER)
    return error(by + name +
                 " has the CTA policy ZERO, which gathers on copy "
                 "engines");
  const std::string ctas =
      " with " + std::to_string(collective.ctas()) + " CTAs";
  if (holdsMultiprocessors(transport)) {
    // A library that may take more does.
    if (collective.ctas() != communicator.max_ctas())
      return error(by + ctas + name + " has a max_ctas of " +
                   std::to_string(communicator.max_ctas()) +
                   "; expected the same number");
  } else if (collective.ctas() != 0) {
    return error(by + ctas + ", which holds no multiprocessor; expected 0");
  }
  if (collective.chunk_bytes() != 0)
    return error(by + " in chunks of " +
                 std::to_string(collective.chunk_bytes()) +
                 " bytes; every transport sends whole, expected 0");
  why = whyNotWithScratch(collective, ranks);
  return why.empty() ? Status::ok() : error(why);
}
