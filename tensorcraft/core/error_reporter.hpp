// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <string>
#include <string_view>

namespace tensorcraft {

// Tells the user of a program about an exception: its kind, and the sentence. One that is no Error
// is of kind internal. A copy: the exception may end before it.
class ErrorReporter {
 public:
  // Takes any exception that was caught.
  explicit ErrorReporter(const std::exception& exception);

  std::string_view kind() const { return kind_; }          // "value", "out_of_memory", ...
  const std::string& message() const { return message_; }  // the sentence
  // Whether what the caller gave was not accepted, so that another try with the same is useless.
  bool is_refusal() const { return is_refusal_; }
  // "tensorcraft: gemm: ...": for standard error, without a line end.
  std::string line(std::string_view program) const;

 private:
  std::string_view kind_;
  std::string message_;
  bool is_refusal_ = false;
};

}  // namespace tensorcraft
