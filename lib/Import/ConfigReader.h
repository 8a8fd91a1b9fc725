//===- ConfigReader.h - Typed, checked access to a config -----------------===//
//
// Importers ask a ConfigObject for keys by type; the ConfigReader behind it
// remembers which were asked for, so that what nobody understood is reported,
// and reports the first error only. `null` counts as absent, as in
// transformers.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_IMPORT_CONFIGREADER_H
#define GTP_LIB_IMPORT_CONFIGREADER_H

#include "JsonIndex.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

#include <memory>
#include <optional>
#include <string>

namespace gtp {

class ConfigReader;

/// A JSON object of the config: the whole, or a nested one such as
/// `rope_scaling`.
class ConfigObject {
public:
  /// All keys, in the order of the text.
  llvm::SmallVector<llvm::StringRef> keys() const;

  /// The value, if it is there and not null. Counts as asking for it.
  const llvm::json::Value *get(llvm::StringRef key) const;

  /// Whether the key is there and not null. Counts as asking for it.
  bool has(llvm::StringRef key) const;
  /// Whether the key is there, even if null.
  bool contains(llvm::StringRef key) const { return values->get(key); }

  /// The value, or nothing when absent. A value of another type, or outside
  /// [low, high], is an error, and nothing.
  std::optional<int64_t> integer(llvm::StringRef key, int64_t low,
                                 int64_t high) const;
  /// Finite, and larger than `low`.
  std::optional<double> number(llvm::StringRef key, double low) const;
  std::optional<bool> boolean(llvm::StringRef key) const;
  std::optional<llvm::StringRef> string(llvm::StringRef key) const;
  std::optional<ConfigObject> object(llvm::StringRef key) const;
  /// All strings of an array.
  std::optional<llvm::SmallVector<llvm::StringRef>>
  strings(llvm::StringRef key) const;

  /// The value, or the family's default, which is then noted for the user.
  int64_t integerOr(llvm::StringRef key, int64_t fallback, int64_t low,
                    int64_t high) const;
  double numberOr(llvm::StringRef key, double fallback, double low) const;
  bool booleanOr(llvm::StringRef key, bool fallback) const;

  /// Refuses any value but `only`, the one that is implemented (or absence).
  void refuseUnless(llvm::StringRef key, bool only) const;
  void refuseUnless(llvm::StringRef key, int64_t only) const;
  /// Refuses presence.
  void refuse(llvm::StringRef key, const llvm::Twine &reason) const;

  /// Reports an error at a key (at the object when it lacks it).
  void error(llvm::StringRef key, const llvm::Twine &message) const;
  void warn(llvm::StringRef key, const llvm::Twine &message) const;
  /// Reports a value that is not what it should be.
  void wrongType(llvm::StringRef key, const llvm::json::Value &found,
                 llvm::StringRef expected) const;

  /// "rope_scaling.factor", for messages.
  std::string path(llvm::StringRef key) const { return prefix + key.str(); }
  ConfigReader &reader() const { return *owner; }

private:
  friend class ConfigReader;
  ConfigObject(ConfigReader *owner, const llvm::json::Object *values,
               std::string prefix)
      : owner(owner), values(values), prefix(std::move(prefix)) {}

  ConfigReader *owner;
  const llvm::json::Object *values;
  std::string prefix;
};

/// Owns the parsed text of one config.
class ConfigReader {
public:
  static constexpr size_t kMaxBytes = size_t(1) << 20;
  static constexpr unsigned kMaxDepth = 64;

  /// Parses `text`, which must outlive the reader, or reports why not.
  /// `meaning` says what the object is.
  static std::unique_ptr<ConfigReader>
  parse(llvm::StringRef text, llvm::StringRef file, mlir::MLIRContext *context,
        llvm::StringRef meaning = "the config of a model");

  ConfigObject root() { return ConfigObject(this, rootObject, ""); }

  /// An error was reported.
  bool failed() const { return hasFailed; }

  /// The place of a key, or of the file's start.
  mlir::Location location(llvm::StringRef path) const;

  /// Remembers a default that changes numbers.
  void noteDefault(llvm::StringRef path, const llvm::Twine &value);

  /// Reports what went beyond the config: defaults in one remark, keys that
  /// nobody asked for, and that are not known to be harmless, in one warning.
  void reportLeftovers(llvm::StringRef family) const;

private:
  friend class ConfigObject;
  ConfigReader(llvm::StringRef text, llvm::StringRef file,
               mlir::MLIRContext *context)
      : index(text, kMaxDepth), file(file), context(context) {}

  mlir::Location locationOf(std::optional<TextPlace> place) const;
  void error(mlir::Location where, const llvm::Twine &message);
  void collectUnknown(const llvm::json::Object &object,
                      const std::string &prefix,
                      llvm::SmallVectorImpl<std::string> &unknown) const;

  JsonIndex index;
  std::string file;
  mlir::MLIRContext *context;
  llvm::json::Value value = nullptr;
  const llvm::json::Object *rootObject = nullptr;
  llvm::StringSet<> used;
  llvm::SmallVector<std::string> defaults;
  bool hasFailed = false;
};

} // namespace gtp

#endif // GTP_LIB_IMPORT_CONFIGREADER_H
