// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_matcher.hpp"

#include <initializer_list>
#include <string_view>

namespace tensorcraft::op {

// Two checks of operators that take any shape and strides, by way of TensorMatcher.
void check_dtype(std::string_view op, std::string_view arg, const TensorView& t,
                 std::initializer_list<DType> dtypes);
// `t` has this dtype and shape, any strides.
void check_like(std::string_view op, std::string_view arg, const TensorView& t, DType dtype,
                const Dims& shape);

}  // namespace tensorcraft::op
