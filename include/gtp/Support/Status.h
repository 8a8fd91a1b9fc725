//===- Status.h - Success, or a message for the user ----------------------===//
//
// What the half without LLVM returns instead of throwing. A message starts in
// lower case and says what was found, what was expected and what would work;
// the tool that prints it adds `error:`.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_SUPPORT_STATUS_H
#define GTP_SUPPORT_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace gtp {

class [[nodiscard]] Status {
public:
  static Status ok() { return Status(); }
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }

  bool isOk() const { return !text; }
  /// Empty when ok.
  std::string message() const { return text.value_or(""); }
  /// The same error with a prefix that says where: "file.json: ...".
  Status in(const std::string &where) && {
    if (text)
      *text = where + ": " + *text;
    return std::move(*this);
  }

private:
  Status() = default;
  std::optional<std::string> text;
};

template <typename T>
class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : held(std::move(value)), state(Status::ok()) {}
  StatusOr(Status status) : state(std::move(status)) {
    assert(!state.isOk() && "an ok StatusOr needs a value");
  }

  bool isOk() const { return state.isOk(); }
  const Status &status() const & { return state; }
  Status status() && { return std::move(state); }
  std::string message() const { return state.message(); }

  T &operator*() { return *held; }
  const T &operator*() const { return *held; }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

private:
  std::optional<T> held;
  Status state;
};

} // namespace gtp

#define GTP_STATUS_CONCAT_IMPL(a, b) a##b
#define GTP_STATUS_CONCAT(a, b) GTP_STATUS_CONCAT_IMPL(a, b)

/// Returns the Status of `expr` from the enclosing function unless it is ok.
#define GTP_RETURN_IF_ERROR(expr)                                              \
  do {                                                                         \
    if (::gtp::Status gtpStatus = (expr); !gtpStatus.isOk())                   \
      return gtpStatus;                                                        \
  } while (false)

/// Assigns the value of a StatusOr to `lhs`, or returns its error.
#define GTP_ASSIGN_OR_RETURN(lhs, expr)                                        \
  GTP_ASSIGN_OR_RETURN_IMPL(GTP_STATUS_CONCAT(gtpStatusOr, __LINE__), lhs, expr)
#define GTP_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)                              \
  auto tmp = (expr);                                                           \
  if (!tmp.isOk())                                                             \
    return std::move(tmp).status();                                            \
  lhs = std::move(*tmp)

#endif // GTP_SUPPORT_STATUS_H
