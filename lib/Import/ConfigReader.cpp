//===- ConfigReader.cpp - Typed, checked access to a config ---------------===//

#include "ConfigReader.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace gtp;
using llvm::StringRef;
using llvm::Twine;

/// Keys of configs that say nothing about the numbers of a training step: file
/// bookkeeping, special tokens, generation, and outputs that are not computed
/// here. docs/import.md lists them for users.
static constexpr llvm::StringLiteral kHarmlessKeys[] = {
    "_attn_implementation",
    "_name_or_path",
    "add_bos_token",
    "add_eos_token",
    "architectures",
    "auto_map",
    "bos_token_id",
    "cache_implementation",
    "dtype",
    "eos_token_id",
    "id2label",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "max_window_layers",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "return_dict",
    "sliding_window",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
};

//===----------------------------------------------------------------------===//
// ConfigReader
//===----------------------------------------------------------------------===//

std::unique_ptr<ConfigReader> ConfigReader::parse(StringRef text,
                                                  StringRef file,
                                                  mlir::MLIRContext *context,
                                                  StringRef meaning) {
  // The bound on the size comes before the pass that builds the index.
  if (text.size() > kMaxBytes) {
    mlir::emitError(mlir::FileLineColLoc::get(context, file, 1, 1))
        << "the file has " << text.size() << " bytes; at most " << kMaxBytes
        << " are read";
    return nullptr;
  }
  std::unique_ptr<ConfigReader> reader(new ConfigReader(text, file, context));
  if (std::optional<TextPlace> deep = reader->index.tooDeep()) {
    reader->error(reader->locationOf(deep),
                  "brackets nest deeper than " + Twine(kMaxDepth) + " levels");
    return nullptr;
  }
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    // The parser's message starts with "[line:column, byte=offset]: ".
    std::string message = llvm::toString(parsed.takeError());
    StringRef rest = message;
    TextPlace place;
    if (!rest.consume_front("[") || rest.consumeInteger(10, place.line) ||
        !rest.consume_front(":") || rest.consumeInteger(10, place.column))
      place = TextPlace();
    size_t colon = rest.find("]: ");
    if (colon != StringRef::npos)
      rest = rest.drop_front(colon + 3);
    // Its columns count from 0.
    place.line = std::max(place.line, 1u);
    ++place.column;
    reader->error(reader->locationOf(place), "not valid JSON: " + rest);
    return nullptr;
  }
  reader->value = std::move(*parsed);
  reader->rootObject = reader->value.getAsObject();
  if (!reader->rootObject) {
    reader->error(reader->location(""), "expected a JSON object, " + meaning);
    return nullptr;
  }
  if (std::optional<TextPlace> twice = reader->index.duplicatePlace()) {
    reader->error(reader->locationOf(twice),
                  "key '" + Twine(reader->index.duplicateKey()) +
                      "' appears twice; keep one");
    return nullptr;
  }
  return reader;
}

mlir::Location ConfigReader::locationOf(std::optional<TextPlace> place) const {
  TextPlace at = place.value_or(TextPlace());
  return mlir::FileLineColLoc::get(context, file, at.line, at.column);
}

mlir::Location ConfigReader::location(StringRef path) const {
  return locationOf(index.find(path));
}

void ConfigReader::error(mlir::Location where, const Twine &message) {
  // Later errors are often consequences of the first.
  if (hasFailed)
    return;
  hasFailed = true;
  mlir::emitError(where) << message;
}

void ConfigReader::noteDefault(StringRef path, const Twine &value) {
  defaults.push_back((path + " = " + value).str());
}

void ConfigReader::collectUnknown(
    const llvm::json::Object &object, const std::string &prefix,
    llvm::SmallVectorImpl<std::string> &unknown) const {
  for (const auto &entry : object) {
    std::string path = prefix + StringRef(entry.first).str();
    if (!used.contains(path)) {
      if (!llvm::is_contained(kHarmlessKeys, path))
        unknown.push_back(path);
    } else if (const llvm::json::Object *nested = entry.second.getAsObject()) {
      collectUnknown(*nested, path + ".", unknown);
    }
  }
}

void ConfigReader::reportLeftovers(StringRef family) const {
  if (!defaults.empty())
    mlir::emitRemark(location(""))
        << "absent keys take the defaults of " << family << ": "
        << llvm::join(defaults, ", ");
  llvm::SmallVector<std::string> unknown;
  collectUnknown(*rootObject, "", unknown);
  if (unknown.empty())
    return;
  // Objects iterate in hash order.
  llvm::sort(unknown);
  constexpr size_t kShown = 20;
  size_t left = unknown.size() > kShown ? unknown.size() - kShown : 0;
  unknown.truncate(std::min(unknown.size(), kShown));
  mlir::InFlightDiagnostic warning =
      mlir::emitWarning(location(unknown.front()));
  warning << "keys that " << family
          << " does not know are ignored: " << llvm::join(unknown, ", ");
  if (left)
    warning << " and " << left << " more";
}

//===----------------------------------------------------------------------===//
// ConfigObject
//===----------------------------------------------------------------------===//

static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

/// A value as messages show it.
static std::string show(const llvm::json::Value &value) {
  if (value.getAsObject())
    return "an object";
  if (value.getAsArray())
    return "an array";
  std::string text = llvm::formatv("{0}", value).str();
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest)
    text = text.substr(0, kLongest) + "...";
  return text;
}

llvm::SmallVector<StringRef> ConfigObject::keys() const {
  llvm::SmallVector<StringRef> result;
  for (const auto &entry : *values)
    result.push_back(entry.first);
  // Objects iterate in hash order. Keys that are too long for the index come
  // first.
  auto order = [&](StringRef key) {
    TextPlace place = owner->index.find(path(key)).value_or(TextPlace());
    return std::tuple(place.line, place.column, key);
  };
  llvm::sort(result,
             [&](StringRef a, StringRef b) { return order(a) < order(b); });
  return result;
}

const llvm::json::Value *ConfigObject::get(StringRef key) const {
  owner->used.insert(path(key));
  const llvm::json::Value *value = values->get(key);
  return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
}

void ConfigObject::error(StringRef key, const Twine &message) const {
  owner->error(owner->location(values->get(key)
                                   ? path(key)
                                   : StringRef(prefix).rtrim('.').str()),
               message);
}

void ConfigObject::warn(StringRef key, const Twine &message) const {
  mlir::emitWarning(owner->location(path(key))) << message;
}

void ConfigObject::wrongType(StringRef key, const llvm::json::Value &found,
                             StringRef expected) const {
  error(key, "'" + Twine(path(key)) + "' is " + show(found) + "; expected " +
                 expected);
}

bool ConfigObject::has(StringRef key) const { return get(key); }

std::optional<int64_t> ConfigObject::integer(StringRef key, int64_t low,
                                             int64_t high) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  std::optional<int64_t> number = value->getAsInteger();
  if (number && *number >= low && *number <= high)
    return number;
  wrongType(key, *value,
            llvm::formatv("an integer from {0} to {1}", low, high).str());
  return std::nullopt;
}

std::optional<double> ConfigObject::number(StringRef key, double low) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  std::optional<double> number = value->getAsNumber();
  if (number && std::isfinite(*number) && *number > low)
    return number;
  wrongType(key, *value,
            std::isfinite(low) ? "a number above " + formatNumber(low)
                               : std::string("a number"));
  return std::nullopt;
}

std::optional<bool> ConfigObject::boolean(StringRef key) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  std::optional<bool> flag = value->getAsBoolean();
  if (!flag)
    wrongType(key, *value, "true or false");
  return flag;
}

std::optional<StringRef> ConfigObject::string(StringRef key) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  std::optional<StringRef> text = value->getAsString();
  if (!text)
    wrongType(key, *value, "a string");
  return text;
}

std::optional<ConfigObject> ConfigObject::object(StringRef key) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  if (const llvm::json::Object *nested = value->getAsObject())
    return ConfigObject(owner, nested, path(key) + ".");
  wrongType(key, *value, "an object");
  return std::nullopt;
}

std::optional<llvm::SmallVector<StringRef>>
ConfigObject::strings(StringRef key) const {
  const llvm::json::Value *value = get(key);
  if (!value)
    return std::nullopt;
  llvm::SmallVector<StringRef> result;
  if (const llvm::json::Array *array = value->getAsArray()) {
    for (const llvm::json::Value &element : *array)
      if (std::optional<StringRef> text = element.getAsString())
        result.push_back(*text);
    if (result.size() == array->size())
      return result;
  }
  wrongType(key, *value, "an array of strings");
  return std::nullopt;
}

int64_t ConfigObject::integerOr(StringRef key, int64_t fallback, int64_t low,
                                int64_t high) const {
  if (!has(key))
    owner->noteDefault(path(key), Twine(fallback));
  return integer(key, low, high).value_or(fallback);
}

double ConfigObject::numberOr(StringRef key, double fallback,
                              double low) const {
  if (!has(key))
    owner->noteDefault(path(key), formatNumber(fallback));
  return number(key, low).value_or(fallback);
}

bool ConfigObject::booleanOr(StringRef key, bool fallback) const {
  if (!has(key))
    owner->noteDefault(path(key), fallback ? "true" : "false");
  return boolean(key).value_or(fallback);
}

void ConfigObject::refuseUnless(StringRef key, bool only) const {
  std::optional<bool> found = boolean(key);
  if (found && *found != only)
    error(key, "'" + Twine(path(key)) + "': " + (*found ? "true" : "false") +
                   " is not supported; only " + (only ? "true" : "false") +
                   " is");
}

void ConfigObject::refuseUnless(StringRef key, int64_t only) const {
  std::optional<int64_t> found = integer(key, INT64_MIN, INT64_MAX);
  if (found && *found != only)
    error(key, "'" + Twine(path(key)) + "': " + Twine(*found) +
                   " is not supported; only " + Twine(only) + " is");
}

void ConfigObject::refuse(StringRef key, const Twine &reason) const {
  if (has(key))
    error(key, "'" + Twine(path(key)) + "' is not supported: " + reason);
}
