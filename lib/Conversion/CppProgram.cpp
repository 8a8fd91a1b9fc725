//===- CppProgram.cpp - A plan as a C++ program, before EmitC -------------===//

#include "CppProgram.h"
#include "CppFields.h"
#include "CppText.h"
#include "PlanRepeats.h"
#include "gtp/Support/LowerCase.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

using namespace gtp;

namespace {

/// Calls that one function makes, some of them through classes.
struct Section {
  std::string function;
  std::string className; ///< of its layers: "Layer"
  std::string noun;      ///< of what it has: "operation"
  std::vector<Item> items;
  std::vector<Stretch> stretches = {};
};

/// What is known of a class while its layers are collected.
struct Draft {
  std::string name;
  std::string noun; ///< what it has: "operation", "buffer", "parameter"
  bool isIssued() const { return noun == "operation"; }
  /// The items of each layer of all its tables.
  std::vector<std::vector<const Item *>> layers;
  CppClass result;
  /// The fields' values, a row a layer.
  std::vector<std::vector<std::string>> rows;
};

/// Names that are not given twice.
class Names {
public:
  explicit Names(std::set<std::string> taken) : taken(std::move(taken)) {}
  std::string give(const std::string &wanted) {
    std::string name = identifier(wanted);
    std::string result = name;
    for (int i = 2; !taken.insert(result).second; ++i)
      result = name + "_" + std::to_string(i);
    return result;
  }
  const std::set<std::string> &all() const { return taken; }

private:
  std::set<std::string> taken;
};

class Layout {
public:
  Layout(const plan::pb::Plan &plan, const PlanItems &items)
      : plan(plan), items(items) {}
  CppProgram run();

private:
  void collectSections();
  void findClasses();
  void nameConstants();
  void fillClass(Draft &draft);
  void writeFunctions();
  std::string literal(const Slot &slot) const;
  CppCall literalCall(const Item &item) const;
  void need(const Slot &slot);
  /// Whether an argument starts so.
  bool isUsed(const std::string &text) const;

  const plan::pb::Plan &plan;
  const PlanItems &items;
  std::vector<Section> sections;
  std::map<std::vector<int>, size_t> classOf;
  std::vector<Draft> drafts;
  /// Of each run of layers, in order: its class and first layer there.
  struct Run {
    size_t draft, firstLayer, count;
    std::string table;
  };
  std::vector<Run> runs;
  std::set<uint64_t> buffers, parameters; ///< named outside of tables
  std::map<uint64_t, std::string> bufferNames, parameterNames;
  Names globals{{}};
  CppProgram program;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sections and classes
//===----------------------------------------------------------------------===//

void Layout::collectSections() {
  sections.push_back(
      {"declareBuffers", "Buffers", "buffer", items.programs[0].buffers});
  sections.push_back(
      {"declareParameters", "Parameters", "parameter", items.parameters});
  std::map<std::string, int> seen;
  for (size_t p = 0; p < items.programs.size(); ++p) {
    const ProgramItems &part = items.programs[p];
    std::string name = lowerCase(part.kind);
    int number = ++seen[name];
    if (number > 1)
      name += std::to_string(number);
    if (p > 0)
      sections.push_back(
          {name + "_buffers", "Buffers", "buffer", part.buffers});
    for (const RegionItems &region : part.regions) {
      std::string function = name + "_" + lowerCase(region.kind);
      int regionNumber = ++seen[function];
      if (regionNumber > 1)
        function += std::to_string(regionNumber);
      sections.push_back({function, "Layer", "operation", region.operations});
    }
  }
}

void Layout::findClasses() {
  std::map<std::string, int> keys;
  std::map<std::string, int> numbers;
  for (Section &section : sections) {
    std::vector<int> list;
    for (const Item &item : section.items)
      list.push_back(keys.try_emplace(item.key(), static_cast<int>(keys.size()))
                         .first->second);
    section.stretches = findRepeats(list);
    for (const Stretch &stretch : section.stretches) {
      if (stretch.count == 1)
        continue;
      auto first = list.begin() + static_cast<ptrdiff_t>(stretch.begin);
      std::vector<int> piece(first,
                             first + static_cast<ptrdiff_t>(stretch.period));
      auto [it, isNew] = classOf.try_emplace(piece, drafts.size());
      if (isNew) {
        Draft &made = drafts.emplace_back();
        made.name =
            section.className + std::to_string(++numbers[section.className]);
        made.noun = section.noun;
      }
      Draft &draft = drafts[it->second];
      runs.push_back({it->second, draft.layers.size(), stretch.count, ""});
      for (size_t layer = 0; layer < stretch.count; ++layer) {
        auto &own = draft.layers.emplace_back();
        for (size_t i = 0; i < stretch.period; ++i)
          own.push_back(
              &section.items[stretch.begin + layer * stretch.period + i]);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// What is the same in all layers, and what is a field
//===----------------------------------------------------------------------===//

template <typename Visit>
static void forEachColumn(const Draft &draft, Visit visit) {
  const std::vector<const Item *> &first = draft.layers[0];
  for (size_t item = 0; item < first.size(); ++item)
    for (size_t a = 0; a < first[item]->arguments.size(); ++a)
      for (size_t s = 0; s < first[item]->arguments[a].slots.size(); ++s) {
        Column column;
        for (const auto &layer : draft.layers)
          column.push_back(&layer[item]->arguments[a].slots[s]);
        visit(item, a, s, column);
      }
}

std::string Layout::literal(const Slot &slot) const {
  switch (slot.kind) {
  case Slot::Name:
    return quoted(slot.text);
  case Slot::Buffer:
    return bufferNames.at(slot.values[0]);
  case Slot::Parameter:
    return parameterNames.at(slot.values[0]);
  case Slot::Number:
  case Slot::Event:
    return std::to_string(slot.values[0]);
  case Slot::Signals:
  case Slot::After:
    break;
  }
  if (slot.values.empty())
    return "";
  return inCall(slot, slot.values.size() == 1 ? std::to_string(slot.values[0])
                                              : listText(slot.values));
}

CppCall Layout::literalCall(const Item &item) const {
  CppCall call{item.callee, {}};
  for (const SlotText &argument : item.arguments) {
    std::string text = argument.pieces[0];
    for (size_t s = 0; s < argument.slots.size(); ++s)
      text += literal(argument.slots[s]) + argument.pieces[s + 1];
    call.arguments.push_back(std::move(text));
  }
  return call;
}

void Layout::fillClass(Draft &draft) {
  CppClass &result = draft.result;
  result.name = draft.name;
  result.function = draft.isIssued() ? "issue" : "declare";
  draft.rows.resize(draft.layers.size());
  std::set<std::string> taken = globals.all();
  taken.insert(result.function);
  Names names(std::move(taken));
  // By type and values: what is equal in every layer is one field.
  std::map<std::pair<std::string, std::vector<std::string>>, std::string> known;
  std::map<const Slot *, std::string> texts;
  forEachColumn(draft, [&](size_t, size_t, size_t, const Column &column) {
    const Slot &slot = *column[0];
    if (isConstant(column)) {
      texts[&slot] = literal(slot);
      return;
    }
    WantedField wanted = fieldFor(column);
    // Equal numbers are so by chance.
    std::string what = slot.kind == Slot::Number ? wanted.name : wanted.type;
    auto [it, isNew] = known.try_emplace(std::pair(what, wanted.rows), "");
    if (isNew) {
      it->second = names.give(wanted.name);
      result.fields.push_back({wanted.type, it->second});
      for (size_t layer = 0; layer < draft.rows.size(); ++layer)
        draft.rows[layer].push_back(wanted.rows[layer]);
    }
    texts[&slot] = inCall(slot, wanted.pattern.empty()
                                    ? it->second
                                    : "named(" + quoted(wanted.pattern) + ", " +
                                          it->second + ")");
  });
  for (const Item *item : draft.layers[0]) {
    CppCall call{item->callee, {}};
    for (const SlotText &argument : item->arguments) {
      std::string text = argument.pieces[0];
      for (size_t s = 0; s < argument.slots.size(); ++s)
        text += texts.at(&argument.slots[s]) + argument.pieces[s + 1];
      call.arguments.push_back(std::move(text));
    }
    result.calls.push_back(std::move(call));
  }
  size_t calls = result.calls.size();
  result.comment = std::to_string(calls) + " " + draft.noun +
                   (calls == 1 ? "" : "s") + " a row, " +
                   std::to_string(draft.layers.size()) + " rows.";
}

//===----------------------------------------------------------------------===//
// Names, functions
//===----------------------------------------------------------------------===//

void Layout::need(const Slot &slot) {
  if (slot.kind == Slot::Buffer)
    buffers.insert(slot.values[0]);
  else if (slot.kind == Slot::Parameter)
    parameters.insert(slot.values[0]);
}

bool Layout::isUsed(const std::string &text) const {
  for (const Section &section : sections)
    for (const Item &item : section.items)
      for (const SlotText &argument : item.arguments)
        if (argument.pieces[0].compare(0, text.size(), text) == 0)
          return true;
  return false;
}

void Layout::nameConstants() {
  auto needAll = [&](const Item &item) {
    for (const SlotText &argument : item.arguments)
      for (const Slot &slot : argument.slots)
        need(slot);
  };
  for (const Section &section : sections)
    for (const Stretch &stretch : section.stretches)
      for (size_t i = 0; stretch.count == 1 && i < stretch.period; ++i)
        needAll(section.items[stretch.begin + i]);
  for (const ProgramItems &part : items.programs)
    for (const Item &item : part.ios)
      needAll(item);
  for (const Draft &draft : drafts)
    forEachColumn(draft, [&](size_t, size_t, size_t, const Column &column) {
      if (isConstant(column))
        need(*column[0]);
    });

  // Names of PlanBuilder.h that calls use, and the program's own.
  globals =
      Names({"plan",     "pb",       "on",        "over",         "named",
             "none",     "f32",      "bf16",      "f64",          "i16",
             "i32",      "i64",      "u8",        "weights",      "Dim",
             "Tensor",   "Buffer",   "Parameter", "Stream",       "Event",
             "Events",   "View",     "Views",     "Communicator", "Issue",
             "Setting",  "Settings", "Over",      "Dims",         "Weights",
             "gtp",      "std",      "main",      "issueAll",     "declareAll",
             "NAN",      "INFINITY", "uint64_t",  "INT64_MIN",    "PlanBuilder",
             "describe", "finish"});
  auto add = [&](std::string type, const std::string &wanted,
                 std::string value) {
    std::string name = globals.give(wanted);
    program.constants.push_back({std::move(type), name, std::move(value)});
    return name;
  };
  auto addUsed = [&](const char *type, const char *function,
                     const std::vector<std::string> &names) {
    for (size_t i = 0; i < names.size(); ++i)
      if (isUsed(std::string(function) + "(" + names[i] + ")"))
        add(type, names[i], std::string(type) + "(" + std::to_string(i) + ")");
  };
  addUsed("Stream", "on", items.streamNames);
  addUsed("Communicator", "over", items.communicatorNames);
  for (size_t i = 0; i < items.lists.size(); ++i)
    add("std::vector<double>", "list" + std::to_string(i),
        "{" + items.lists[i] + "}");
  for (const Section &section : sections)
    globals.give(section.function);
  for (const Draft &draft : drafts)
    globals.give(draft.name);
  for (Run &run : runs)
    run.table = globals.give(lowerCase(drafts[run.draft].name) + "s");
  for (uint64_t index : buffers)
    bufferNames[index] =
        add("Buffer",
            plan.strings(int(plan.buffers(int(index)).name())) + "_buffer",
            std::to_string(index));
  for (uint64_t index : parameters)
    parameterNames[index] = add(
        "Parameter",
        plan.strings(int(plan.parameters(int(index)).name())) + "_parameter",
        std::to_string(index));
}

void Layout::writeFunctions() {
  size_t run = 0;
  auto callsOf = [&](const Section &section) {
    CppFunction function{section.function, {}};
    for (const Stretch &stretch : section.stretches) {
      if (stretch.count > 1) {
        bool isIssued = drafts[runs[run].draft].isIssued();
        function.calls.push_back(
            {isIssued ? "issueAll" : "declareAll", {runs[run].table}});
        ++run;
        continue;
      }
      for (size_t i = 0; i < stretch.period; ++i)
        function.calls.push_back(literalCall(section.items[stretch.begin + i]));
    }
    return function;
  };
  CppFunction describe{"describe", {}};
  for (const Item &item : items.header)
    describe.calls.push_back(literalCall(item));
  program.functions.push_back(std::move(describe));
  size_t next = 0;
  program.functions.push_back(callsOf(sections[next++]));
  program.functions.push_back(callsOf(sections[next++]));
  CppFunction places{"declareStreams", {}};
  for (const auto *list : {&items.communicators, &items.streams})
    for (const Item &item : *list)
      places.calls.push_back(literalCall(item));
  program.functions.push_back(std::move(places));
  for (size_t p = 0; p < items.programs.size(); ++p) {
    const ProgramItems &part = items.programs[p];
    if (p > 0)
      program.functions.push_back(callsOf(sections[next++]));
    for (size_t r = 0; r < part.regions.size(); ++r) {
      CppFunction region = callsOf(sections[next++]);
      std::vector<CppCall> begin;
      if (r == 0) {
        begin.push_back({"plan.program", {"pb::Program::" + part.kind}});
        for (const Item &item : part.ios)
          begin.push_back(literalCall(item));
      }
      begin.push_back(literalCall(part.regions[r].begin));
      region.calls.insert(region.calls.begin(), begin.begin(), begin.end());
      program.functions.push_back(std::move(region));
    }
  }
}

CppProgram Layout::run() {
  collectSections();
  findClasses();
  nameConstants();
  for (Draft &draft : drafts)
    fillClass(draft);
  for (const Run &run : runs) {
    const Draft &draft = drafts[run.draft];
    auto first = draft.rows.begin() + static_cast<ptrdiff_t>(run.firstLayer);
    program.tables.push_back(
        {draft.name,
         run.table,
         {first, first + static_cast<ptrdiff_t>(run.count)}});
  }
  writeFunctions();
  for (Draft &draft : drafts)
    program.classes.push_back(std::move(draft.result));
  return std::move(program);
}

CppProgram gtp::cppProgramOf(const plan::pb::Plan &plan,
                             const PlanItems &items) {
  return Layout(plan, items).run();
}
