// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/output_type.h"

#include <string_view>

namespace tensorcraft::op {

// `dtype` if the sums and products of x may be of it. Kind type if not.
inline DType asked_dtype(std::string_view op, DType x, DType dtype) {
  const bool is_float =
      dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
  const bool is_integer = !is_floating(dtype) && dtype != DType::bool_;
  if (is_float || (is_integer && !is_floating(x))) return dtype;
  fail(ErrorKind::type, op, ": dtype must be float32, float16 or bfloat16",
       is_floating(x) ? "" : ", or int8, int16, int32, int64 or uint8", " for x of ", x, ", got ",
       dtype, "; convert the result with astype");
}

// Returns how a kernel whose own results are `own` is told the dtype of out.
constexpr OutputType output_type(DType out, DType own) {
  if (out == own) return OutputType::own;
  switch (out) {
    case DType::float32:
      return OutputType::float32;
    case DType::float16:
      return OutputType::float16;
    case DType::bfloat16:
      return OutputType::bfloat16;
    default:
      break;
  }
  switch (dtype_bytes(out)) {
    case 1:
      return OutputType::bits8;
    case 2:
      return OutputType::bits16;
    case 4:
      return OutputType::bits32;
    default:
      return OutputType::bits64;
  }
}

}  // namespace tensorcraft::op
