// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/expression/operation.h"

#include <iterator>
#include <string_view>

namespace tensorcraft::expression {

// In the order of Operation's values, as device text spells them.
inline constexpr std::string_view kOperationNames[] = {"fill",
                                                       "copy",
                                                       "astype",
                                                       "negative",
                                                       "abs",
                                                       "sign",
                                                       "round",
                                                       "floor",
                                                       "ceil",
                                                       "trunc",
                                                       "bitwise_invert",
                                                       "exp",
                                                       "log",
                                                       "sqrt",
                                                       "rsqrt",
                                                       "tanh",
                                                       "sigmoid",
                                                       "relu",
                                                       "leaky_relu",
                                                       "elu",
                                                       "silu",
                                                       "swish",
                                                       "gelu",
                                                       "gelu_tanh",
                                                       "sin",
                                                       "cos",
                                                       "tan",
                                                       "asin",
                                                       "acos",
                                                       "atan",
                                                       "sinh",
                                                       "cosh",
                                                       "asinh",
                                                       "acosh",
                                                       "atanh",
                                                       "expm1",
                                                       "exp2",
                                                       "log1p",
                                                       "log2",
                                                       "log10",
                                                       "erf",
                                                       "add",
                                                       "subtract",
                                                       "multiply",
                                                       "divide",
                                                       "maximum",
                                                       "minimum",
                                                       "pow",
                                                       "floor_divide",
                                                       "remainder",
                                                       "atan2",
                                                       "hypot",
                                                       "logaddexp",
                                                       "copysign",
                                                       "nextafter",
                                                       "bitwise_and",
                                                       "bitwise_or",
                                                       "bitwise_xor",
                                                       "bitwise_left_shift",
                                                       "bitwise_right_shift",
                                                       "equal",
                                                       "not_equal",
                                                       "less",
                                                       "less_equal",
                                                       "where"};
static_assert(std::size(kOperationNames) == size_t(Operation::where) + 1);

constexpr std::string_view word(Operation operation) { return kOperationNames[size_t(operation)]; }

}  // namespace tensorcraft::expression
