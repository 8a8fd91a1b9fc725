//===- Programs.cpp - Rule `structure`: what a program is made of ---------===//

#include "Structure.h"

#include <algorithm>
#include <map>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

constexpr std::string_view kBatchInputs[] = {"tokens", "labels"};

void checkIo(Context &c, const pb::Io &io, bool input,
             std::map<std::string, int> &seen) {
  const pb::Model &model = c.plan.model();
  uint64_t tokens =
      model.microbatches() * model.micro_batch() * model.sequence() * 4;
  const std::map<std::string, uint64_t> sizes =
      input ? std::map<std::string, uint64_t>{{"tokens", tokens},
                                              {"labels", tokens},
                                              {"hyper", 32}}
            : std::map<std::string, uint64_t>{
                  {"loss", 4}, {"grad_norm", 4}, {"count", 8}};
  std::string name = c.string(io.name());
  std::string where =
      c.programText() + (input ? "input" : "output") + " '" + name + "'";
  auto known = sizes.find(name);
  // Only a training step is told how to train and says how large gradients are.
  if (known == sizes.end() ||
      (!c.trains() && (name == "hyper" || name == "grad_norm")))
    return c.fail("structure", where + " is none that the runtime knows");
  if (seen[name]++)
    c.fail("structure", where + " is given twice");
  if (!in(io.buffer(), c.plan.buffers_size()))
    return c.fail("structure", where + " is in buffer " +
                                   std::to_string(io.buffer()) +
                                   ", which does not exist");
  const pb::Buffer &buffer = c.buffer(io.buffer());
  if (buffer.kind() != (input ? pb::Buffer::INPUT : pb::Buffer::OUTPUT))
    c.fail("structure", where + " is in " + c.bufferText(io.buffer()) +
                            " of kind " + pb::Buffer::Kind_Name(buffer.kind()));
  if (buffer.size() != known->second)
    c.fail("structure", where + " is in " + c.bufferText(io.buffer()) + " of " +
                            std::to_string(buffer.size()) +
                            " bytes, expected " +
                            std::to_string(known->second));
}

/// The training step is once, body, update; an evaluation has no update, and
/// what comes behind its body is once too.
bool mayFollow(const Context &c, pb::Region::Kind previous,
               pb::Region::Kind kind) {
  if (c.trains())
    return kind >= previous;
  return kind == pb::Region::ONCE || kind == pb::Region::BODY;
}

} // namespace

bool check::isBatchInput(std::string_view name) {
  return std::find(std::begin(kBatchInputs), std::end(kBatchInputs), name) !=
         std::end(kBatchInputs);
}

void check::checkProgram(Context &c) {
  const pb::Program &program = c.program();
  if (c.programIndex == 0 && !c.trains())
    c.fail("unsupported", "program 0 must be a training step");
  if (c.programIndex > 0 && program.kind() != pb::Program::EVAL)
    c.fail("unsupported", "program " + std::to_string(c.programIndex) +
                              " is of kind " + std::to_string(program.kind()) +
                              ", expected EVAL");
  if (program.rotated())
    c.fail("unsupported", "rotated programs are not supported yet");
  std::map<std::string, int> seen;
  for (const pb::Io &io : program.inputs())
    checkIo(c, io, true, seen);
  for (const pb::Io &io : program.outputs())
    checkIo(c, io, false, seen);

  pb::Region::Kind previous = pb::Region::ONCE;
  int bodies = 0;
  for (int i = 0; i < program.regions_size(); ++i) {
    const pb::Region &region = program.regions(i);
    std::string where = c.programText() + "region " + std::to_string(i);
    if (region.kind() == pb::Region::DRAIN)
      c.fail("unsupported", where + ": drain regions are not supported yet");
    if (!pb::Region::Kind_IsValid(region.kind()) ||
        !mayFollow(c, previous, region.kind()))
      c.fail("structure", where + (c.trains() ? ": the order of regions is "
                                                "once, body, update"
                                              : ": an evaluation has regions "
                                                "once and body only"));
    previous = region.kind();
    bool body = region.kind() == pb::Region::BODY;
    bodies += body;
    uint64_t repeat = body ? c.plan.model().microbatches() : 1;
    if (region.repeat() != repeat)
      c.fail("structure", where + " runs " + std::to_string(region.repeat()) +
                              " times, expected " + std::to_string(repeat));
  }
  if (bodies != 1)
    c.fail("structure", c.programText() + "program has " +
                            std::to_string(bodies) +
                            " body regions, expected one");
}
