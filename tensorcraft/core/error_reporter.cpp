// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error_reporter.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {

ErrorReporter::ErrorReporter(const std::exception& exception) : message_(exception.what()) {
  const auto* const error = dynamic_cast<const Error*>(&exception);
  const ErrorKind kind = error ? error->kind() : ErrorKind::internal;
  kind_ = to_string(kind);
  is_refusal_ = kind == ErrorKind::value || kind == ErrorKind::type || kind == ErrorKind::index ||
                kind == ErrorKind::key || kind == ErrorKind::axis;
}

std::string ErrorReporter::line(std::string_view program) const {
  return join(program, ": ", message_);
}

}  // namespace tensorcraft
