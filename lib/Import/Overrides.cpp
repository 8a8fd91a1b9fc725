//===- Overrides.cpp - What is decided for single parameters --------------===//

#include "gtp/Import/Overrides.h"

#include "ConfigReader.h"

#include "dialects/Tfm/TfmDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace gtp;

//===----------------------------------------------------------------------===//
// Regular expressions
//===----------------------------------------------------------------------===//

llvm::Error gtp::checkRegex(StringRef pattern) {
  // Names are short. Repetitions multiply, and so does what compiling them
  // takes.
  constexpr size_t kLongest = 4096, kRepetitions = 2;
  if (pattern.size() > kLongest)
    return llvm::createStringError("a regular expression of " +
                                   Twine(pattern.size()) + " bytes; at most " +
                                   Twine(kLongest) + " are read");
  if (pattern.count('{') > kRepetitions)
    return llvm::createStringError("more than " + Twine(kRepetitions) +
                                   " repetitions {..}; write them out");
  std::string reason;
  if (llvm::Regex(pattern).isValid(reason))
    return llvm::Error::success();
  // The parser does not say where it stopped: behind the longest beginning
  // that is an expression.
  size_t valid = pattern.size();
  std::string ignored;
  while (valid > 0 && !llvm::Regex(pattern.take_front(valid)).isValid(ignored))
    --valid;
  return llvm::createStringError(
      "no POSIX extended regular expression from character " +
      Twine(valid + 1) + " on, '" + pattern.drop_front(valid) + "': " + reason);
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {

/// What one expression decides for the parameters that it finds.
struct Rule {
  std::string pattern;
  /// As messages name it.
  std::string text;
  Location loc;
  std::optional<bool> frozen = {};
  std::optional<bool> replicated = {};
  std::optional<std::string> prefetch = {};
};

/// The decision of one kind for one parameter, and the rule that it is from.
template <typename T>
struct Decision {
  std::optional<T> value;
  const Rule *rule = nullptr;
};

/// Applies rules to one parameter; later ones must agree with earlier ones.
class ParameterDecisions {
public:
  explicit ParameterDecisions(tfm::ParameterOp op) : op(op) {}

  LogicalResult add(const Rule &rule) {
    return failure(
        failed(merge(rule, frozen, rule.frozen, "freeze")) ||
        failed(merge(rule, replicated, rule.replicated, "replicate")) ||
        failed(merge(rule, prefetch, rule.prefetch, "prefetch")));
  }

  void apply() {
    Builder builder(op.getContext());
    if (frozen.value)
      op.setFrozen(*frozen.value);
    if (replicated.value)
      op.setReplicated(*replicated.value);
    if (prefetch.value)
      op.setPrefetchAttr(builder.getStringAttr(*prefetch.value));
  }

private:
  template <typename T>
  LogicalResult merge(const Rule &rule, Decision<T> &decision,
                      const std::optional<T> &value, StringRef key) {
    if (!value)
      return success();
    if (decision.value && *decision.value != *value) {
      InFlightDiagnostic diagnostic =
          emitError(rule.loc)
          << rule.text << " contradicts " << decision.rule->text << ": '" << key
          << "' of " << op.getSymName()
          << " differs; make their expressions apart";
      diagnostic.attachNote(decision.rule->loc) << "the other is here";
      return diagnostic;
    }
    decision = {value, &rule};
    return success();
  }

  tfm::ParameterOp op;
  Decision<bool> frozen, replicated;
  Decision<std::string> prefetch;
};

} // namespace

/// The names under which checkpoints may have a parameter's rows: tensors, one
/// behind the other, and other names of them all.
static SmallVector<StringRef> namesOf(tfm::ParameterOp op, bool tied) {
  ArrayAttr names = tied ? op.getTied() : op.getTensorNames();
  return llvm::to_vector(names.getAsValueRange<StringAttr>());
}

/// Whether a rule finds a parameter; an error if it finds some of its rows.
static FailureOr<bool> finds(const Rule &rule, const llvm::Regex &regex,
                             tfm::ParameterOp op) {
  auto isFound = [&](StringRef name) { return regex.match(name); };
  if (llvm::any_of(namesOf(op, /*tied=*/true), isFound))
    return true;
  SmallVector<StringRef> tensors = namesOf(op, /*tied=*/false);
  auto *found = llvm::find_if(tensors, isFound);
  if (found == tensors.end())
    return false;
  auto *other = llvm::find_if_not(tensors, isFound);
  if (other == tensors.end())
    return true;
  return emitError(rule.loc)
         << rule.text << " finds '" << *found << "' but not '" << *other
         << "', which is in the same parameter of the program, "
         << op.getSymName() << "; find all of them or none";
}

/// "a, b, c, ... and z (12 in all)".
static std::string someNames(ArrayRef<tfm::ParameterOp> parameters) {
  SmallVector<StringRef> names;
  for (tfm::ParameterOp op : parameters)
    llvm::append_range(names, namesOf(op, /*tied=*/false));
  constexpr size_t kShown = 4;
  if (names.size() <= kShown + 1)
    return llvm::join(names, ", ");
  return llvm::join(ArrayRef(names).take_front(kShown), ", ") + ", ... and " +
         names.back().str() + " (" + std::to_string(names.size()) + " in all)";
}

/// Applies rules, all of one rank.
static LogicalResult applyRules(ArrayRef<Rule> rules,
                                ArrayRef<tfm::ParameterOp> parameters) {
  SmallVector<ParameterDecisions> decisions(parameters.begin(),
                                            parameters.end());
  for (const Rule &rule : rules) {
    llvm::Regex regex(rule.pattern);
    bool any = false;
    for (auto [op, decision] : llvm::zip_equal(parameters, decisions)) {
      FailureOr<bool> found = finds(rule, regex, op);
      if (failed(found))
        return failure();
      any |= *found;
      if (*found && failed(decision.add(rule)))
        return failure();
    }
    if (!any)
      return emitError(rule.loc)
             << rule.text
             << " finds no parameter; checkpoint names of this model are "
             << someNames(parameters);
  }
  for (ParameterDecisions &decision : decisions)
    decision.apply();
  return success();
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

/// "off", "auto" or a number of gathers.
static std::optional<std::string> readPrefetch(const ConfigObject &object) {
  const llvm::json::Value *value = object.get("prefetch");
  if (!value)
    return std::nullopt;
  std::optional<StringRef> text = value->getAsString();
  if (text && (*text == "off" || *text == "auto"))
    return text->str();
  std::optional<int64_t> distance = value->getAsInteger();
  if (distance && *distance >= 1 && *distance <= int64_t(UINT32_MAX))
    return std::to_string(*distance);
  object.wrongType("prefetch", *value,
                   "\"off\", \"auto\" or a number of gathers from 1 to " +
                       std::to_string(UINT32_MAX));
  return std::nullopt;
}

static void readRule(const ConfigObject &root, StringRef pattern,
                     SmallVectorImpl<Rule> &rules) {
  std::optional<ConfigObject> object = root.object(pattern);
  if (!object)
    return root.error(pattern, "'" + pattern +
                                   "' is null; expected an object of freeze, "
                                   "replicate and prefetch");
  if (llvm::Error error = checkRegex(pattern))
    return root.error(pattern,
                      "'" + pattern + "': " + llvm::toString(std::move(error)));
  Rule rule{pattern.str(), "'" + pattern.str() + "'",
            root.reader().location(pattern)};
  rule.frozen = object->boolean("freeze");
  rule.replicated = object->boolean("replicate");
  rule.prefetch = readPrefetch(*object);
  for (StringRef key : object->keys()) {
    if (key != "freeze" && key != "replicate" && key != "prefetch")
      return object->error(key, "'" + key + "' of '" + pattern +
                                    "' is no decision; expected freeze, "
                                    "replicate or prefetch");
    // A config means by null that it has no such key; here it is a slip.
    if (!object->get(key))
      return object->error(key, "'" + key + "' of '" + pattern +
                                    "' is null; leave it out, or decide it");
  }
  if (!rule.frozen && !rule.replicated && !rule.prefetch)
    return root.error(pattern, "'" + pattern +
                                   "' decides nothing; expected freeze, "
                                   "replicate or prefetch");
  rules.push_back(std::move(rule));
}

static LogicalResult readFile(StringRef path, MLIRContext *context,
                              Location fallback, SmallVectorImpl<Rule> &rules) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return emitError(fallback)
           << "--overrides=" << path
           << ": cannot read it: " << buffer.getError().message();
  std::unique_ptr<ConfigReader> reader =
      ConfigReader::parse((*buffer)->getBuffer(), path, context,
                          "what is decided for single parameters");
  if (!reader)
    return failure();
  ConfigObject root = reader->root();
  SmallVector<StringRef> patterns = root.keys();
  for (StringRef pattern : patterns) {
    readRule(root, pattern, rules);
    if (reader->failed())
      return failure();
  }
  if (patterns.empty())
    root.error("", "there is no decision; expected regular expressions, each "
                   "with an object of freeze, replicate and prefetch");
  return failure(reader->failed());
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

LogicalResult gtp::applyOverrides(ModuleOp module,
                                  const OverrideOptions &options) {
  if (options.freeze.empty() && options.replicate.empty() &&
      options.file.empty())
    return success();
  auto parameters = llvm::to_vector(module.getOps<tfm::ParameterOp>());
  if (parameters.empty())
    return module.emitError("there is no parameter to decide anything for");

  SmallVector<Rule> rules;
  auto addOption = [&](StringRef option, const std::string &pattern,
                       std::optional<bool> Rule::*place) -> LogicalResult {
    if (pattern.empty())
      return success();
    std::string text = ("--" + option + "=" + pattern).str();
    if (llvm::Error error = checkRegex(pattern))
      return module.emitError()
             << text << ": " << llvm::toString(std::move(error));
    rules.push_back({pattern, text, module.getLoc()});
    rules.back().*place = true;
    return success();
  };
  if (failed(addOption("freeze", options.freeze, &Rule::frozen)) ||
      failed(addOption("replicate", options.replicate, &Rule::replicated)) ||
      failed(applyRules(rules, parameters)))
    return failure();

  if (!options.file.empty()) {
    rules.clear();
    if (failed(readFile(options.file, module.getContext(), module.getLoc(),
                        rules)) ||
        failed(applyRules(rules, parameters)))
      return failure();
  }
  if (llvm::all_of(parameters,
                   [](tfm::ParameterOp op) { return op.getFrozen(); }))
    return module.emitError()
           << "all " << parameters.size()
           << " parameters are frozen, so there is nothing to train; let "
              "--freeze or --overrides leave out at least one of "
           << someNames(parameters);
  return success();
}
