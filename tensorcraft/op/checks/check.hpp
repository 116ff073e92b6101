// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_matcher.hpp"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace tensorcraft::op {

// Checks of operators that take any shape and strides, by way of TensorMatcher.
void check_dtype(std::string_view op, std::string_view arg, const TensorView& t,
                 std::initializer_list<DType> dtypes);
// `t` has this dtype and shape, any strides.
void check_like(std::string_view op, std::string_view arg, const TensorView& t, DType dtype,
                const Dims& shape);

// The numbers of an attention over scores scale q k^T: finite, a cap above 0, and a window of two
// sides of at least -1.
void check_scores(std::string_view op, const std::optional<float>& scale,
                  const std::optional<float>& softcap, const std::optional<Dims>& window);

// Kind value if `written` and `read` share memory, or may: "OP: OUT overlaps the memory of IN;
// FIX".
void check_apart(std::string_view op, std::string_view out, const TensorView& written,
                 std::string_view in, const TensorView& read,
                 std::string_view fix = "give it memory of its own");

}  // namespace tensorcraft::op
