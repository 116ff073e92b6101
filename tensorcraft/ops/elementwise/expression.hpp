// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/named_operand.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of elementwise() besides its operands.
struct ExpressionOptions {
  std::optional<DType> out_dtype = {};   // of the result; none: what the expression gives
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// An expression over up to eight arrays, fused into one kernel:
//   elementwise("silu(g) * u + b", {{"g", g}, {"u", u}, {"b", 0.5}})
// Arrays may have any strides and dtypes, and their shapes broadcast by NumPy's rule; at least one
// operand is an array, and each is in the text. The result is what the sequence of the library's
// operators gives on the same device, bit for bit: each step is rounded to the dtype that its
// operator returns (float32(x) keeps the steps after it in float32). docs/expressions.md has the
// language. Kind value or type with a caret below the column if the text is wrong. out has the
// broadcast shape and the dtype of the result, and may be an operand of that shape.
void elementwise(const TensorView& out, std::string_view expression, NamedOperands operands,
                 const ExpressionOptions& options = {});
Tensor elementwise(std::string_view expression, NamedOperands operands,
                   const ExpressionOptions& options = {});

}  // namespace tensorcraft
