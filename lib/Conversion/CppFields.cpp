//===- CppFields.cpp - What differs between layers of a class -------------===//

#include "CppFields.h"
#include "CppText.h"

#include <algorithm>
#include <cctype>
#include <optional>

using namespace gtp;

bool gtp::isConstant(const Column &column) {
  return std::all_of(column.begin(), column.end(),
                     [&](const Slot *slot) { return *slot == *column[0]; });
}

static std::vector<std::string> split(const std::string &name) {
  std::vector<std::string> parts(1);
  for (char c : name)
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// Names that differ in one part only, as a pattern with "*" there.
static std::optional<std::pair<std::string, std::vector<std::string>>>
patternOf(const Column &column) {
  std::vector<std::string> first = split(column[0]->text);
  std::optional<size_t> place;
  std::vector<std::string> labels;
  for (const Slot *slot : column) {
    std::vector<std::string> parts = split(slot->text);
    if (parts.size() != first.size())
      return std::nullopt;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].find('*') != std::string::npos)
        return std::nullopt;
      if (parts[i] == first[i])
        continue;
      if (place && *place != i)
        return std::nullopt;
      place = i;
    }
  }
  std::string pattern;
  for (size_t i = 0; i < first.size(); ++i)
    pattern += (i ? "." : "") + (i == place ? std::string("*") : first[i]);
  for (const Slot *slot : column)
    labels.push_back(split(slot->text)[*place]);
  return std::pair(pattern, labels);
}

/// The part of a name behind its number, for people: "model.layers.3.mlp" is
/// "mlp".
static std::string shortName(const std::string &name) {
  std::vector<std::string> parts = split(name);
  size_t begin = 0;
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    if (!parts[i].empty() &&
        std::all_of(parts[i].begin(), parts[i].end(),
                    [](unsigned char c) { return std::isdigit(c); }))
      begin = i + 1;
  std::string text;
  for (size_t i = begin; i < parts.size(); ++i)
    text += (i > begin ? "_" : "") + parts[i];
  return text;
}

WantedField gtp::fieldFor(const Column &column) {
  WantedField wanted;
  // Where layers differ in more than a number (the first reads an embedding),
  // most of them are alike.
  const Slot *named = column[column.size() / 2];
  for (size_t i = 0; named->text.empty() && i < column.size(); ++i)
    named = column[i];
  wanted.name = shortName(named->text);
  auto addRows = [&](auto text) {
    for (const Slot *slot : column)
      wanted.rows.push_back(text(*slot));
  };
  auto number = [](const Slot &slot) {
    return slot.values.empty() ? std::string("none")
                               : std::to_string(slot.values[0]);
  };
  bool areSingle =
      std::all_of(column.begin(), column.end(),
                  [](const Slot *slot) { return slot->values.size() == 1; });
  switch (column[0]->kind) {
  case Slot::Name:
    wanted.type = "const char*";
    if (auto found = patternOf(column)) {
      wanted.name = "layer";
      wanted.pattern = found->first;
      for (const std::string &label : found->second)
        wanted.rows.push_back(quoted(label));
    } else {
      wanted.name = "name";
      addRows([](const Slot &slot) { return quoted(slot.text); });
    }
    break;
  case Slot::Number:
    wanted.type = "uint64_t";
    addRows(number);
    break;
  case Slot::Buffer:
    wanted.type = "Buffer";
    addRows(number);
    break;
  case Slot::Parameter:
    wanted.type = "Parameter";
    wanted.name += "_parameter";
    addRows(number);
    break;
  case Slot::After:
    if (!areSingle) {
      wanted.type = "Events";
      wanted.name += "_waits";
      addRows([](const Slot &slot) { return listText(slot.values); });
      break;
    }
    [[fallthrough]];
  case Slot::Signals:
  case Slot::Event:
    wanted.type = "Event";
    wanted.name += "_done";
    addRows(number);
    break;
  }
  return wanted;
}

std::string gtp::inCall(const Slot &slot, const std::string &value) {
  if (slot.kind == Slot::Signals)
    return ".signals(" + value + ")";
  if (slot.kind == Slot::After)
    return ".after(" + value + ")";
  return value;
}
